import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { findIssuingCoverage, findQueryCoverage } from '../../domain/registrar/coverage.ts';
import {
  findTimeProblem,
  type ParsedRegistrationCertificate,
  parseRegistration,
  parseRegistrationCertificate,
  type RegistrationCertificate,
  RegistrationCertificateRefusal,
} from '../../domain/registrar/registration-certificate.ts';
import type { RegisteredUse } from '../../domain/registrar/registration-certificate-request.ts';
import { isJsonObject } from '../../domain/shared/json.ts';
import { algorithmOf } from '../../domain/shared/jwk.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { parseStatusReference } from '../../domain/status-lists/reference.ts';
import { needs, type Token } from '../needs.ts';
import { Certificates, type ChainVerdict, type TrustAnchor } from '../ports/certificates.ts';
import { Signatures } from '../ports/signatures.ts';
import { StatusVerifier } from '../status-lists/verify-status.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

const PURPOSE = 'registration certificate';

/** A verified certificate; whether it covers a request is checked separately. */
export type CheckedCertificate = RegistrationCertificate & { readonly jwt: string };

/** Verifies registration certificates: signature, times, status (ETSI TS 119 475 section 5.2). */
export class RegistrationCertificateVerifier extends needs({
  signatures: Signatures,
  certificates: Certificates,
  statusVerifier: StatusVerifier as Token<Pick<StatusVerifier, 'verify'>>,
}) {
  /**
   * Requires a signer under a configured anchor. Without anchors the signature only has to match the certificates in the header,
   * whatever their names.
   * @param use that the certificate has to cover.
   * @throws RegistrationCertificateRefusal
   */
  async verify(tenant: TenantConfiguration, jwt: string, now: Date, { query, issued }: RegisteredUse = {}): Promise<CheckedCertificate> {
    const parsedCertificate = parseRegistrationCertificate(jwt);
    const configured = await configuredAnchors(tenant);
    // Without a configured anchor the last certificate of the chain is used.
    const ownAnchors = parsedCertificate.chain.slice(-1).map((certificate) => ({ certificate }));
    const anchors = configured.length > 0 ? configured : ownAnchors;
    const signer = this.ports.certificates.verifyChain(parsedCertificate.chain, anchors, now, { purpose: PURPOSE });
    if (!signer.trusted) throw new RegistrationCertificateRefusal(`its signer is not accepted (${signer.detail})`);
    this.#checkSignature(parsedCertificate, signer);
    const certificate = parseRegistration(parsedCertificate);
    const fault = findTimeProblem(certificate, now);
    if (fault !== undefined) throw new RegistrationCertificateRefusal(fault);
    await this.#checkStatus(tenant, certificate, { chain: parsedCertificate.chain, issuer: signer, anchors });
    const coverage = query && findQueryCoverage(certificate, query);
    if (coverage?.covered === false) throw new RegistrationCertificateRefusal(`it does not cover the query: ${coverage.gap}`);
    const issuanceCoverage = issued && findIssuingCoverage(certificate, issued);
    if (issuanceCoverage?.covered === false)
      throw new RegistrationCertificateRefusal(`it does not cover what is issued: ${issuanceCoverage.gap}`);
    return { ...certificate, jwt };
  }

  #checkSignature({ jws, algorithm }: ParsedRegistrationCertificate, { key }: Trusted): void {
    // RFC 8725 section 3.1: the algorithm follows from the key.
    const isGood = algorithmOf(key) === algorithm && this.ports.signatures.verify(key, jws.signingInput, jws.signature);
    if (!isGood) throw new RegistrationCertificateRefusal('its signature is not that of its signer');
  }

  async #checkStatus(
    tenant: TenantConfiguration,
    { status }: RegistrationCertificate,
    signer: { readonly chain: readonly string[]; readonly issuer: Trusted; readonly anchors: readonly TrustAnchor[] },
  ): Promise<void> {
    if (status === undefined) return;
    // Other status mechanisms than lists are ignored (Token Status List section 6.1).
    if (isJsonObject(status) && status['status_list'] === undefined) return;
    try {
      const reference = parseStatusReference({ status });
      if (reference !== undefined) await this.ports.statusVerifier.verify({ tenant, reference, purpose: PURPOSE, ...signer });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw statusRefusal(error);
    }
  }
}

type Trusted = Extract<ChainVerdict, { trusted: true }>;

async function configuredAnchors(tenant: TenantConfiguration): Promise<readonly TrustAnchor[]> {
  const pems = (await tenant.registrarConfiguration())?.registrationCertificateAnchors ?? [];
  return tenant.derive('registration-certificate-anchors', () =>
    pems.flatMap((pem) => (parsePemCertificates(pem, 1) ?? []).map((certificate) => ({ certificate }))),
  );
}

function statusRefusal({ reason }: Refusal): RegistrationCertificateRefusal {
  if (reason === 'status_revoked') return new RegistrationCertificateRefusal('it is revoked');
  if (reason === 'status_suspended') return new RegistrationCertificateRefusal('it is suspended');
  const isTemporary = reason === 'status_unavailable';
  return new RegistrationCertificateRefusal(`its status cannot be determined (${reason})`, isTemporary);
}
