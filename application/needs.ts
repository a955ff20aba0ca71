/** An abstract or concrete class: type, documentation and injection token in one. */
export type Token<T = unknown> = abstract new (...parameters: never[]) => T;

export type Tokens = Readonly<Record<string, Token>>;

export type PortsOf<T extends Tokens> = {
  readonly [Name in keyof T]: T[Name] extends Token<infer Port> ? Port : never;
};

/**
 * Base class with injected ports: `extends needs({ store: Store })` gives a class `this.ports.store` and its constructor, and
 * tells the wiring what to construct it with.
 */
export function needs<T extends Tokens>(tokens: T) {
  return class {
    static readonly needs = tokens;
    protected readonly ports: PortsOf<T>;

    constructor(ports: PortsOf<T>) {
      this.ports = ports;
    }
  };
}
