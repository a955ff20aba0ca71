import { Failure } from '../shared/failure.ts';
import { mayUse } from './client.ts';

/** Identifiers of a configuration by the property that contains them. */
export type IdentifiersByProperty = Readonly<Record<string, readonly string[]>>;

export type IdentifiedConfiguration = { readonly id: string; readonly names: IdentifiersByProperty };

/**
 * A client that is restricted to some configurations must not use identifiers of others: its credentials would pass for theirs. Identifiers
 * that a configuration had before are retained.
 * @param allowed configurations of the client; empty or null permits all.
 * @throws Failure `forbidden`, which does not reveal the other configuration.
 */
export function assertNoForeignIdentifiers(
  allowed: readonly string[] | null,
  configuration: IdentifiedConfiguration,
  previous: IdentifiedConfiguration | undefined,
  otherConfigurations: readonly IdentifiedConfiguration[],
): void {
  const forbidden = otherConfigurations.filter(({ id }) => id !== configuration.id && !mayUse(allowed, id));
  for (const [member, names] of Object.entries(configuration.names)) {
    const added = names.filter((name) => !previous?.names[member]?.includes(name));
    if (forbidden.some((otherConfiguration) => added.some((name) => otherConfiguration.names[member]?.includes(name)))) {
      throw new Failure('forbidden', `${member} belongs to another configuration, which this client may not use`);
    }
  }
}
