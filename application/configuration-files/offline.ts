import type { IssuedType } from '../../domain/registrar/coverage.ts';
import type { RegistrationCertificateRequest } from '../../domain/registrar/registration-certificate-request.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { ownTrustListOf } from '../../domain/trust-lists/own-address.ts';
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
import { type CertifiedList, ListSigners, type SignedBy } from '../trust-lists/list-signers.ts';

const notAsked = () => Promise.reject(new RegistrarError('unavailable', 'no registrar is asked during the import'));

/** A start does not depend on others: a login is tried when it is used. */
export const NOT_ASKED: Registrar = {
  logIn: async () => {},
  relyingParties: notAsked,
  issueAccessCertificate: notAsked,
  issueRegistrationCertificate: notAsked,
  findRegistrationCertificate: notAsked,
};

/**
 * A start does not depend on others either for trust lists: who signs them stands in the documents, as an export writes it, or
 * was stored before. Lists of other tenants may be imported later.
 */
export class OfflineListSigners extends ListSigners {
  protected override async signerOf(tenantId: TenantId, uri: string): Promise<SignedBy> {
    const own = ownTrustListOf(uri, this.ports.settings.publicUrl);
    if (own !== undefined) return own.tenantId === tenantId ? super.signerOf(tenantId, uri) : {};
    throw new TrustListRefusal('unavailable', 'an import fetches nothing, so give the certificate of its signer');
  }

  protected override async read(tenantId: TenantId, certified: CertifiedList): Promise<TrustList | undefined> {
    const own = ownTrustListOf(certified.uri, this.ports.settings.publicUrl);
    return own?.tenantId === tenantId ? super.read(tenantId, certified) : undefined;
  }
}

type Ports = { readonly store: Store; readonly signatures: Signatures; readonly certificates: Certificates };

/**
 * Registration certificates that stand in a document are judged, their status excepted. What a registrar has to issue
 * is obtained by the first request that needs it; that request judges the status, too.
 */
export class OfflineRegistrationCertificates extends RegistrationCertificates {
  constructor(ports: Ports) {
    const statusVerifier = { verify: async () => {} };
    const registrationCertificateVerifier = new RegistrationCertificateVerifier({ ...ports, statusVerifier });
    super({ ...ports, registrar: NOT_ASKED, registrationCertificateVerifier });
  }

  override async assertUsable(configured: TenantConfiguration, configuration: PresentationConfigurationBody, now: Date): Promise<void> {
    if (configuration.registrationCert?.jwt !== undefined) await super.assertUsable(configured, configuration, now);
  }
}

/** The same for the certificate of an issuer. */
export class OfflineIssuerRegistration extends IssuerRegistration {
  protected override async obtained(
    configured: TenantConfiguration,
    request: RegistrationCertificateRequest,
    issued: readonly IssuedType[],
    now: Date,
  ): Promise<CheckedCertificate | undefined> {
    return request.jwt === undefined ? undefined : super.obtained(configured, request, issued, now);
  }
}
