import type { IssuedType } from '../../domain/registrar/coverage.ts';
import type { RegistrationCertificateRequest } from '../../domain/registrar/registration-certificate-request.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { parseInternalTrustListAddress } from '../../domain/trust-lists/internal-address.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import type { Certificates } from '../ports/certificates.ts';
import { type Registrar, RegistrarError } from '../ports/registrar.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { Store } from '../ports/store.ts';
import { IssuerRegistration } from '../registrar/issuer-registration.ts';
import { type CheckedCertificate, RegistrationCertificateVerifier } from '../registrar/registration-certificate-verifier.ts';
import { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type CertifiedList, ListSigners, type SignerAndContent } from '../trust-lists/list-signers.ts';

const rejectOffline = () => Promise.reject(new RegistrarError('unavailable', 'no registrar is called during the import'));

/** A registrar without network: a start must not depend on it, so logins are tested when they are used. */
export const OFFLINE_REGISTRAR: Registrar = {
  logIn: async () => {},
  relyingParties: rejectOffline,
  issueAccessCertificate: rejectOffline,
  issueRegistrationCertificate: rejectOffline,
  findRegistrationCertificate: rejectOffline,
};

/**
 * List signers without network, since a start must not depend on it: signers are part of the documents, as in an export, or are already
 * stored. Lists of other tenants may be imported later.
 */
export class OfflineListSigners extends ListSigners {
  protected override async signerOf(tenantId: TenantId, uri: string): Promise<SignerAndContent> {
    const ownList = parseInternalTrustListAddress(uri, this.ports.settings.publicUrl);
    if (ownList !== undefined) return ownList.tenantId === tenantId ? super.signerOf(tenantId, uri) : {};
    throw new TrustListRefusal('unavailable', 'an import fetches nothing, so set the certificate of its signer');
  }

  protected override async read(tenantId: TenantId, certifiedList: CertifiedList): Promise<TrustList | undefined> {
    const ownList = parseInternalTrustListAddress(certifiedList.uri, this.ports.settings.publicUrl);
    return ownList?.tenantId === tenantId ? super.read(tenantId, certifiedList) : undefined;
  }
}

type Ports = { readonly store: Store; readonly signatures: Signatures; readonly certificates: Certificates };

/**
 * Verifies registration certificates in documents without their status. Certificates that a registrar has to issue are obtained by the
 * first request that needs them; that request also checks the status.
 */
export class OfflineRegistrationCertificates extends RegistrationCertificates {
  constructor(ports: Ports) {
    const statusVerifier = { verify: async () => {} };
    const registrationCertificateVerifier = new RegistrationCertificateVerifier({ ...ports, statusVerifier });
    super({ ...ports, registrar: OFFLINE_REGISTRAR, registrationCertificateVerifier });
  }

  override async assertUsable(tenant: TenantConfiguration, configuration: PresentationConfigurationBody, now: Date): Promise<void> {
    if (configuration.registrationCert?.jwt !== undefined) await super.assertUsable(tenant, configuration, now);
  }
}

export class OfflineIssuerRegistration extends IssuerRegistration {
  protected override async obtain(
    tenant: TenantConfiguration,
    request: RegistrationCertificateRequest,
    issued: readonly IssuedType[],
    now: Date,
  ): Promise<CheckedCertificate | undefined> {
    return request.jwt === undefined ? undefined : super.obtain(tenant, request, issued, now);
  }
}
