import type { TenantCaller } from '../../../application/caller.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { sharedAuthorityFindings } from '../../../domain/keys/key-chain-rights.ts';
import { type Finding, type Warning, warningsOf } from '../../../domain/shared/finding.ts';
import { warningsFor } from '../warnings.ts';

/** Findings that follow from the other key chains under the same authority. */
export function authorityFindings(chain: KeyChain, all: readonly KeyChain[]): readonly Finding[] {
  const isSharedAlone = sharedAuthorityFindings(chain, []).length > 0;
  return isSharedAlone ? [] : sharedAuthorityFindings(chain, all);
}

/** @param all key chains of the tenant. */
export function keyWarnings(
  chain: KeyChain,
  all: readonly KeyChain[],
  caller: TenantCaller,
): readonly Warning[] {
  const { profile } = caller.configured;
  return [...warningsFor('key-chain', chain, profile), ...warningsOf(authorityFindings(chain, all), profile)];
}
