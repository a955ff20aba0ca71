import type { KeyChain } from '../keys/key-chain.ts';
import { type FieldError, invalidFields } from '../shared/failure.ts';
import { addressOf, type ListOwner } from './entity-address.ts';
import { certificatesOf, sourcesOf } from './entity-certificates.ts';
import type { TrustListEntity } from './list-configuration.ts';

/**
 * Readers tell entities apart by their names and country alone, so what one entity lists counts for another of the same
 * identity: who revokes for the one would revoke for both.
 * @throws Failure `invalid_input` that names each entity that is called like an earlier one but lists other certificates.
 */
export function assertDistinct(entities: readonly TrustListEntity[], chains: readonly KeyChain[], owner: ListOwner): void {
  const first = new Map<string, { readonly index: number; readonly listed: string }>();
  const errors = entities.flatMap((entity, index): FieldError[] => {
    const { name, lang = 'en' } = entity.info;
    const { country = null } = addressOf(entity, chains, owner);
    const identity = JSON.stringify([name, lang, country]);
    const listed = JSON.stringify(sourcesOf(entity).map((source) => certificatesOf(source, chains)));
    const other = first.get(identity);
    if (other === undefined) first.set(identity, { index, listed });
    if (other === undefined || other.listed === listed) return [];
    const message =
      `Readers cannot tell this entity from entities.${other.index}, which has the same name and country but other ` +
      'certificates. Give it a name of its own.';
    return [{ path: `entities.${index}.info.name`, message }];
  });
  if (errors.length > 0) throw invalidFields(errors);
}
