namespace Shop.Small;

public class Basket
{
    public int Count { get; set; }
}
