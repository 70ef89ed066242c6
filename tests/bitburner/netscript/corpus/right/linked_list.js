// The game: works
class Node {
  constructor(value) {
    this.value = value;
    this.next = null;
  }
}
export class List {
  head = null;
  reverse() {
    let previous = null, current = this.head, next = null;
    while (current) {
      next = current.next;
      current.next = previous;
      previous = current;
      current = next;
    }
    this.head = previous;
  }
  add(value) {
    const node = new Node(value);
    node.next = this.head;
    this.head = node;
  }
}
