import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import type { MdlProfile } from '../../domain/formats/mdoc/driving-licence.ts';
import type { CertificateRevocation } from '../../domain/verification/certificate-revocation.ts';
import type { PresentedValues } from '../../domain/verification/configuration.ts';
import { type PresentationAlgorithms, presentationAlgorithms } from '../../domain/verification/request-object.ts';
import { frozenPolicy, type VerificationPolicy } from '../../domain/verification/verification-policy.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { holdsToAgreed, holdsToHaip } from './haip.ts';

/** What a presentation configuration and its tenant demand of every presentation. */
export type PresentationRules = {
  readonly mdlProfile: MdlProfile | undefined;
  readonly certificateRevocation: CertificateRevocation;
  /** Whether credentials are held against the metadata of their types. */
  readonly holdsToTypes: boolean;
  readonly haip: boolean;
  readonly algorithms: PresentationAlgorithms;
  readonly values: PresentedValues;
};

/**
 * @param configurationId undefined, or of a deleted configuration: the defaults hold.
 * @param policy that the request keeps; undefined where the configuration decides.
 */
export async function rulesOf(
  configured: TenantConfiguration,
  configurationId: string | undefined,
  policy?: VerificationPolicy,
): Promise<PresentationRules> {
  const configuration = policy ?? (configurationId === undefined ? undefined : await configured.presentationConfiguration(configurationId));
  const { mdlProfile, certificateRevocation, values, typeMetadata } = configuration ?? {};
  const haip = holdsToHaip(configured);
  return {
    mdlProfile: mdlProfile ?? undefined,
    certificateRevocation: certificateRevocation ?? 'off',
    haip,
    algorithms: presentationAlgorithms(holdsToAgreed(configured)),
    values: values ?? 'disclosed',
    holdsToTypes: typeMetadata === 'enforced',
  };
}

/** The policy that a request keeps, see `frozenPolicy`. */
export async function policyToKeep(
  configured: TenantConfiguration,
  configuration: VerificationPolicy,
): Promise<VerificationPolicy | undefined> {
  const { trustAnchors = [] } = configuration;
  const chains = trustAnchors.some((anchor) => 'keyChainId' in anchor) ? await configured.keyChains() : [];
  const authorities = chains.flatMap(({ id, root }) =>
    root === undefined ? [] : [[id, writePemCertificates([root.certificate])] as const],
  );
  return frozenPolicy(configuration, new Map(authorities));
}
