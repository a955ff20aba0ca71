import { subjectPlace } from '../../domain/formats/der/place.ts';
import { DRIVING_LICENCE, issuingPlaceFault } from '../../domain/formats/mdoc/driving-licence.ts';
import { mdocElements } from '../../domain/issuance/mdoc-claims.ts';
import { documentSignerChain, type KeyChain, pickKeyChain } from '../../domain/keys/key-chain.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Clock } from '../ports/clock.ts';
import type { Issuable } from './collect-claims.ts';

/**
 * What keeps a driving licence from being signed by the key chain of its configuration: readers refuse one of another
 * country or state than its signer (ISO/IEC 18013-5 section 9.3.1).
 * @returns what is wrong, without the values of claims.
 */
export async function licencePlaceFault(
  clock: Clock,
  { configured, configuration, claims }: Issuable,
): Promise<string | undefined> {
  const { config, keyChainId } = configuration;
  if (config.format !== 'mso_mdoc' || config.docType !== DRIVING_LICENCE) return undefined;
  const chain = usableChain(await configured.keyChains(), clock.now(), keyChainId ?? undefined);
  const [certificate] = chain === undefined ? [] : documentSignerChain(chain);
  if (chain === undefined || certificate === undefined) return undefined;
  const fault = issuingPlaceFault(subjectPlace(certificate), mdocElements(config, claims));
  return fault && `the key chain "${chain.id}" cannot sign this licence: ${fault}`;
}

/** Without a usable one nothing is issued anyway, and whoever signs says so. */
function usableChain(chains: readonly KeyChain[], now: Date, id: string | undefined): KeyChain | undefined {
  try {
    return pickKeyChain(chains, 'signing', now, id);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
