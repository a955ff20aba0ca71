import { Failure } from '../shared/failure.ts';
import { mayUse } from './client.ts';

/** What a configuration is known by, or signs with, under the member that says so. */
export type Names = Readonly<Record<string, readonly string[]>>;

export type Named = { readonly id: string; readonly names: Names };

/**
 * A client that is restricted to some configurations does not give them what makes out others: its credentials would pass
 * for theirs. What a configuration had before it keeps.
 * @param allowed configurations of the client; empty or null means all.
 * @throws Failure `forbidden`, which does not tell whose the name is.
 */
export function assertOwnNames(
  allowed: readonly string[] | null,
  wanted: Named,
  before: Named | undefined,
  others: readonly Named[],
): void {
  const foreign = others.filter(({ id }) => id !== wanted.id && !mayUse(allowed, id));
  for (const [member, names] of Object.entries(wanted.names)) {
    const added = names.filter((name) => !before?.names[member]?.includes(name));
    if (foreign.some((other) => added.some((name) => other.names[member]?.includes(name)))) {
      throw new Failure('forbidden', `${member} is that of another configuration, which this client may not use`);
    }
  }
}
