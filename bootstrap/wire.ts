import type { Container, Newable, ServiceIdentifier } from 'inversify';
import type { PortsOf, Token, Tokens } from '../application/needs.ts';
import type { Feature, Given, Wired } from './modules/feature.ts';

/** Binds the classes of all features, each once for the whole process. */
export function wire(container: Container, features: readonly Feature[]): void {
  for (const wired of features.flatMap(({ classes }) => classes)) bind(container, givenOf(wired));
}

/** @returns what these tokens stand for, by their names. */
export function resolve<T extends Tokens>(container: Container, tokens: T): PortsOf<T> {
  const ports = Object.entries(tokens).map(([name, token]) => [name, container.get(identifierOf(token))]);
  return Object.fromEntries(ports) as PortsOf<T>;
}

export function identifierOf<T>(token: Token<T>): ServiceIdentifier<T> {
  return token as unknown as ServiceIdentifier<T>;
}

function givenOf(wired: Wired): Given {
  if ('type' in wired) return wired;
  return { type: wired, needs: 'needs' in wired ? wired.needs : {}, as: [] };
}

function bind(container: Container, { type, needs, as }: Given): void {
  const names = Object.keys(needs);
  const Class = type as unknown as new (ports: object) => unknown;
  container
    .bind(identifierOf(type))
    .toResolvedValue(
      (...values: unknown[]) => new Class(Object.fromEntries(names.map((name, i) => [name, values[i]]))),
      Object.values(needs) as unknown as Newable[],
    )
    .inSingletonScope();
  for (const port of as) container.bind(identifierOf(port)).toService(identifierOf(type));
}
