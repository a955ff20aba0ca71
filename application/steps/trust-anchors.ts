import { readPemCertificates } from '../../domain/formats/der/pem.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import type { TrustAnchor } from '../ports/certificates.ts';
import type { TenantView } from './tenant-views.ts';

/** Without anchors every credential is refused (OpenID4VP 1.0 section 14.1: nothing is trusted by default). */
const NONE: readonly TrustAnchor[] = [];

/**
 * Whom a presentation configuration trusts at this moment. An anchor that is taken away counts for requests that
 * are under way already, and a removed configuration trusts nobody. One array per view, since path validation
 * remembers what it knows by the array itself.
 */
export function trustAnchorsOf(
  view: TenantView,
  configurationId: string | undefined,
): Promise<readonly TrustAnchor[]> {
  if (configurationId === undefined) return Promise.resolve(NONE);
  return view.derive(`trust-anchors/${configurationId}`, async () => {
    const configuration = await view.presentationConfiguration(configurationId);
    return configuration === undefined ? NONE : anchorsOf(configuration, await view.keyChains());
  });
}

function anchorsOf(
  { trustAnchors = [] }: PresentationConfiguration,
  chains: readonly KeyChain[],
): readonly TrustAnchor[] {
  const roots = new Map(chains.map((chain) => [chain.id, chain.root?.certificate]));
  const certificates = trustAnchors.flatMap((anchor) =>
    'certificate' in anchor
      ? (readPemCertificates(anchor.certificate, 1) ?? [])
      : (roots.get(anchor.keyChainId) ?? []),
  );
  return [...new Set(certificates)].map((certificate) => ({ certificate }));
}
