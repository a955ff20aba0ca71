import type { MdlProfile } from '../../domain/formats/mdoc/driving-licence.ts';
import type { CertificateRevocation } from '../../domain/verification/certificate-revocation.ts';
import type { PresentedValues } from '../../domain/verification/configuration.ts';
import {
  type PresentationAlgorithms,
  presentationAlgorithms,
} from '../../domain/verification/request-object.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
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

/** @param configurationId undefined, or of one that is gone: what holds unless something is stated. */
export async function rulesOf(
  configured: TenantConfiguration,
  configurationId: string | undefined,
): Promise<PresentationRules> {
  const configuration =
    configurationId === undefined ? undefined : await configured.presentationConfiguration(configurationId);
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
