import type { TenantCaller } from '../../../application/caller.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { findSharedAuthorityProblems } from '../../../domain/keys/key-chain-rights.ts';
import { type Finding, type Warning, warningsOf } from '../../../domain/shared/finding.ts';
import { warningsFor } from '../output/warnings.ts';

/** Problems that follow from the other key chains under the same authority. */
export function findAuthorityProblems(chain: KeyChain, chains: readonly KeyChain[]): readonly Finding[] {
  const isSharedAlone = findSharedAuthorityProblems(chain, []).length > 0;
  return isSharedAlone ? [] : findSharedAuthorityProblems(chain, chains);
}

/** @param chains all key chains of the tenant. */
export function keyWarnings(chain: KeyChain, chains: readonly KeyChain[], caller: TenantCaller): readonly Warning[] {
  const { profile } = caller.tenant;
  return [...warningsFor('key-chain', chain, profile), ...warningsOf(findAuthorityProblems(chain, chains), profile)];
}
