export function View({ name }: { name: string }) {
  const onClick = () => { alert("don't"); };
  return <p onClick={onClick}>It's {name} {"}"}</p>;
}
