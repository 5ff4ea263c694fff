<?php
declare(strict_types=1);

namespace App\Models;

use App\Contracts\Priced;

const LIMIT = 10;

// class Commented {}
interface HasTotal
{
    public function total(): int;
}

trait Loggable
{
    protected function log(string $message): void
    {
        echo "class NotThere { {$message} }";
    }
}

enum Status: string
{
    case Open = 'open';
    case Closed = 'closed';

    public function label(): string
    {
        return ucfirst($this->value);
    }
}

abstract class Cart implements HasTotal
{
    use Loggable;

    public const MAX_ITEMS = 50;

    public function __construct(private array $items = []) {}

    public static function make(): static
    {
        return new static();
    }

    abstract public function currency(): string;

    public function total(): int
    {
        $sum = array_reduce($this->items, fn($a, $b) => $a + $b, 0);
        $anonymous = new class { public function inner() { return 1; } };
        return $sum;
    }
}

function helper(int ...$numbers): int
{
    return array_sum($numbers);
}
?>
<p>function not_there() {}</p>
