import type { Container, ServiceIdentifier } from 'inversify';
import type { PortsOf, Token, Tokens } from '../../application/needs.ts';
import { Traces } from '../../application/ports/traces.ts';

/** A class that declares its dependencies. */
type ClassWithNeeds<T> = { readonly needs: Tokens; new (ports: object): T };

/**
 * @returns the instance of the process for `token`: an adapter that was bound to its port, or a class that declares its dependencies and
 *   is created at the first use.
 */
export function obtain<T>(container: Container, token: Token<T>): T {
  const identifier = identifierOf(token);
  if (!container.isBound(identifier) && 'needs' in token) {
    const type = token as unknown as ClassWithNeeds<T>;
    const make = () => traced(container, new type(resolve(container, type.needs)));
    container.bind(identifier).toDynamicValue(make).inSingletonScope();
  }
  return container.get(identifier);
}

/** When traces are collected, each use case is a span with the name of its class. */
function traced<T>(container: Container, instance: T): T {
  const traces = find(container, Traces);
  const useCase = instance as { execute?: (...parameters: unknown[]) => unknown };
  const { execute } = useCase;
  if (traces === undefined || typeof execute !== 'function') return instance;
  const { name } = (instance as object).constructor;
  useCase.execute = (...parameters) => traces.span(name, {}, () => execute.apply(instance, parameters));
  return instance;
}

/** @returns the adapter of a port that is not part of every configuration; undefined when there is none. */
export function find<T>(container: Container, port: Token<T>): T | undefined {
  return container.isBound(identifierOf(port)) ? container.get(identifierOf(port)) : undefined;
}

/** @returns the instances for these tokens, by name. */
export function resolve<T extends Tokens>(container: Container, tokens: T): PortsOf<T> {
  const ports = Object.entries(tokens).map(([name, token]) => [name, obtain(container, token)]);
  return Object.fromEntries(ports) as PortsOf<T>;
}

export function identifierOf<T>(token: Token<T>): ServiceIdentifier<T> {
  return token as unknown as ServiceIdentifier<T>;
}
