// What the type check has to know of preact.js, whose own names are short ones.
export class Component {
  constructor(props: any);
  props: any;
  state: any;
  setState(values: object): void;
}
export function h(kind: any, props?: object | null, ...children: any[]): any;
export function render(what: any, where: Element): void;
