import type { ContainerModuleLoadOptions, Newable, ServiceIdentifier } from 'inversify';

/** An abstract or concrete class: type, documentation and injection token in one. */
// biome-ignore lint/suspicious/noExplicitAny: tokens are classes with any constructor
export type Token<T> = abstract new (...parameters: any[]) => T;

type TokensOf<Ports> = { readonly [Name in keyof Ports]: Token<Ports[Name]> };

/**
 * Binds a class whose constructor takes one object of ports. A missing, surplus or wrongly typed port is a compile
 * error at the line that wires it.
 */
export function wire<T, Ports extends object>(
  options: ContainerModuleLoadOptions,
  type: new (ports: Ports) => T,
  tokens: TokensOf<Ports>,
  as: Token<T> = type,
): void {
  const names = Object.keys(tokens) as (keyof Ports)[];
  options
    .bind(as as ServiceIdentifier<T>)
    .toResolvedValue(
      (...values: unknown[]) =>
        new type(Object.fromEntries(names.map((name, i) => [name, values[i]])) as Ports),
      names.map((name) => tokens[name] as unknown as Newable),
    )
    .inSingletonScope();
}
