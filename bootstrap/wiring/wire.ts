import type { Container, ServiceIdentifier } from 'inversify';
import type { PortsOf, Token, Tokens } from '../../application/needs.ts';
import { Traces } from '../../application/ports/traces.ts';

/** A class that says what it needs. */
type Needy<T> = { readonly needs: Tokens; new (ports: object): T };

/**
 * @returns the one of the whole process that `token` stands for: an adapter that was bound to its port, or a class that
 *   says what it needs, made when it is wanted first.
 */
export function obtain<T>(container: Container, token: Token<T>): T {
  const identifier = identifierOf(token);
  if (!container.isBound(identifier) && 'needs' in token) {
    const type = token as unknown as Needy<T>;
    const make = () => traced(container, new type(resolve(container, type.needs)));
    container.bind(identifier).toDynamicValue(make).inSingletonScope();
  }
  return container.get(identifier);
}

/** Where somebody collects traces, each use case is a part of them under the name of its class. */
function traced<T>(container: Container, made: T): T {
  const traces = find(container, Traces);
  const useCase = made as { execute?: (...asked: unknown[]) => unknown };
  const { execute } = useCase;
  if (traces === undefined || typeof execute !== 'function') return made;
  const { name } = (made as object).constructor;
  useCase.execute = (...asked) => traces.span(name, {}, () => execute.apply(made, asked));
  return made;
}

/** @returns the adapter of a port that not every configuration has; undefined where there is none. */
export function find<T>(container: Container, port: Token<T>): T | undefined {
  return container.isBound(identifierOf(port)) ? container.get(identifierOf(port)) : undefined;
}

/** @returns what these tokens stand for, by their names. */
export function resolve<T extends Tokens>(container: Container, tokens: T): PortsOf<T> {
  const ports = Object.entries(tokens).map(([name, token]) => [name, obtain(container, token)]);
  return Object.fromEntries(ports) as PortsOf<T>;
}

export function identifierOf<T>(token: Token<T>): ServiceIdentifier<T> {
  return token as unknown as ServiceIdentifier<T>;
}
