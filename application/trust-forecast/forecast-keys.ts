import { findKeyChain, type KeyChain, type KeyUsage } from '../../domain/keys/key-chain.ts';
import type { AffectedConfigurations, Ending } from '../../domain/trust-lists/forecast.ts';
import type { ForecastSubject } from './forecast-subject.ts';

const NEW_CERTIFICATE = 'upload another certificate (PATCH /key-chain/{id}), or set another key chain in these configurations';
const NEW_AUTHORITY =
  'create another key chain, publish its root certificate to verifiers, and set it in these configurations before this one expires';

/** Expiry dates of the tenant's own certificates: leaves, and the CAs above them. */
export function endingKeys(subject: ForecastSubject): readonly Ending[] {
  return subject.chains.flatMap((chain): Ending[] => {
    const { id, description, root, active } = chain;
    const name = description ?? id;
    const affects = signedBy(chain, subject);
    // A leaf expires with its CA at the latest, so a leaf with the same date cannot be renewed.
    const renews = root !== undefined && root.notAfter > active.notAfter;
    const leaf: Ending = {
      kind: 'key-chain',
      id,
      name,
      endsAt: active.notAfter,
      renews,
      affects,
      advice: renews ? 'none: it is renewed before that time' : root === undefined ? NEW_CERTIFICATE : NEW_AUTHORITY,
    };
    if (root === undefined) return [leaf];
    const trusting = trustedBy(chain, subject);
    const presentation = [...new Set([...affects.presentation, ...trusting])];
    const authority: Ending = {
      kind: 'authority',
      id,
      name,
      endsAt: root.notAfter,
      renews: false,
      advice: NEW_AUTHORITY,
      affects: { ...affects, presentation },
    };
    return [leaf, authority];
  });
}

/** Configurations that need the key chain to sign: by reference, or because it is the default of its usage. */
function signedBy(chain: KeyChain, { chains, credentials, presentations, statusLists, now }: ForecastSubject): AffectedConfigurations {
  const isFirst = (usage: KeyUsage) => findKeyChain(chains, usage, now)?.id === chain.id;
  const isChosen = (keyChainId: string | null | undefined, usage: KeyUsage) =>
    chain.usages.includes(usage) && ((keyChainId ?? undefined) === undefined ? isFirst(usage) : keyChainId === chain.id);
  const lists = statusLists.filter(({ keyChainId }) => isChosen(keyChainId, 'statusList'));
  const isBound = new Set(lists.map(({ credentialConfigurationId }) => credentialConfigurationId));
  return {
    issuance: credentials
      .filter(
        ({ id, keyChainId, statusManagement }) =>
          isChosen(keyChainId, 'signing') || (statusManagement === true && (isBound.has(id) || isBound.has(null) || isFirst('statusList'))),
      )
      .map(({ id }) => id),
    presentation: presentations
      .filter(
        ({ accessKeyChainId, furtherAccessKeyChainIds }) =>
          isChosen(accessKeyChainId, 'access') || furtherAccessKeyChainIds?.includes(chain.id) === true,
      )
      .map(({ id }) => id),
  };
}

function trustedBy(chain: KeyChain, { presentations }: ForecastSubject): readonly string[] {
  const isIssuing = chain.usages.includes('signing');
  return presentations
    .filter(({ trustAnchors = [{ ownAuthorities: true }] }) =>
      trustAnchors.some(
        (anchor) => ('keyChainId' in anchor && anchor.keyChainId === chain.id) || ('ownAuthorities' in anchor && isIssuing),
      ),
    )
    .map(({ id }) => id);
}
