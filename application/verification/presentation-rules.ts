import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import type { MdlProfile } from '../../domain/formats/mdoc/driving-licence.ts';
import type { CertificateRevocation } from '../../domain/verification/certificate-revocation.ts';
import type { PresentedValues } from '../../domain/verification/configuration.ts';
import { type PresentationAlgorithms, presentationAlgorithms } from '../../domain/verification/request-object.ts';
import { frozenPolicy, type VerificationPolicy } from '../../domain/verification/verification-policy.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { requiresAgreedAlgorithms, requiresHaip } from './haip.ts';

/** Requirements of a presentation configuration and its tenant. */
export type PresentationRules = {
  readonly mdlProfile: MdlProfile | undefined;
  readonly certificateRevocation: CertificateRevocation;
  /** True if credentials are validated against the metadata of their types. */
  readonly holdsToTypes: boolean;
  readonly haip: boolean;
  readonly algorithms: PresentationAlgorithms;
  readonly values: PresentedValues;
};

/**
 * @param configurationId undefined, or of a deleted configuration: the defaults apply.
 * @param policy of the request; undefined if the configuration decides.
 */
export async function rulesOf(
  tenant: TenantConfiguration,
  configurationId: string | undefined,
  policy?: VerificationPolicy,
): Promise<PresentationRules> {
  const configuration = policy ?? (configurationId === undefined ? undefined : await tenant.presentationConfiguration(configurationId));
  const { mdlProfile, certificateRevocation, values, typeMetadata } = configuration ?? {};
  const haip = requiresHaip(tenant);
  return {
    mdlProfile: mdlProfile ?? undefined,
    certificateRevocation: certificateRevocation ?? 'off',
    haip,
    algorithms: presentationAlgorithms(requiresAgreedAlgorithms(tenant)),
    values: values ?? 'disclosed',
    holdsToTypes: typeMetadata === 'enforced',
  };
}

/** The policy that a new request stores, see `frozenPolicy`. */
export async function policyToStore(
  tenant: TenantConfiguration,
  configuration: VerificationPolicy,
): Promise<VerificationPolicy | undefined> {
  const { trustAnchors = [] } = configuration;
  const chains = trustAnchors.some((anchor) => 'keyChainId' in anchor) ? await tenant.keyChains() : [];
  const authorities = chains.flatMap(({ id, root }) =>
    root === undefined ? [] : [[id, writePemCertificates([root.certificate])] as const],
  );
  return frozenPolicy(configuration, new Map(authorities));
}
