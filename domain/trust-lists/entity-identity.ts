import type { KeyChain } from '../keys/key-chain.ts';
import { type FieldError, invalidFields } from '../shared/failure.ts';
import { addressOf, type ListOwner } from './entity-address.ts';
import { certificatesOf, sourcesOf } from './entity-certificates.ts';
import type { TrustListEntity } from './list-configuration.ts';

/**
 * Verifiers identify entities by names and country only. Services of two entities with the same identity would be merged, so one entity
 * could revoke credentials of the other.
 * @throws Failure `invalid_input` with each entity that has the identity of an earlier one but other certificates.
 */
export function assertDistinctIdentities(entities: readonly TrustListEntity[], chains: readonly KeyChain[], owner: ListOwner): void {
  const firstByIdentity = new Map<string, { readonly index: number; readonly listed: string }>();
  const errors = entities.flatMap((entity, index): FieldError[] => {
    const { name, lang = 'en' } = entity.info;
    const { country = null } = addressOf(entity, chains, owner);
    const identity = JSON.stringify([name, lang, country]);
    const certificates = JSON.stringify(sourcesOf(entity).map((source) => certificatesOf(source, chains)));
    const earlier = firstByIdentity.get(identity);
    if (earlier === undefined) firstByIdentity.set(identity, { index, listed: certificates });
    if (earlier === undefined || earlier.listed === certificates) return [];
    const message =
      `Readers cannot tell this entity from entities.${earlier.index}, which has the same name and country but other ` +
      'certificates. Use a different name.';
    return [{ path: `entities.${index}.info.name`, message }];
  });
  if (errors.length > 0) throw invalidFields(errors);
}
