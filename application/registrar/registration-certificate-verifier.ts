import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { covers, coversIssuing } from '../../domain/registrar/coverage.ts';
import {
  findTimeProblem,
  type OpenedCertificate,
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

/** A certificate that is good in itself; whether it is good for a request is another question. */
export type CheckedCertificate = RegistrationCertificate & { readonly jwt: string };

/** Checks registration certificates: signature, times, status (ETSI TS 119 475 section 5.2). */
export class RegistrationCertificateVerifier extends needs({
  signatures: Signatures,
  certificates: Certificates,
  statusVerifier: StatusVerifier as Token<Pick<StatusVerifier, 'verify'>>,
}) {
  /**
   * Its signer has to be under an anchor that the tenant configured. Without any, the signature has to be
   * that of the certificates inside, whatever they name.
   * @param use that it has to cover.
   * @throws RegistrationCertificateRefusal
   */
  async verify(
    configured: TenantConfiguration,
    jwt: string,
    now: Date,
    { query, issued }: RegisteredUse = {},
  ): Promise<CheckedCertificate> {
    const opened = parseRegistrationCertificate(jwt);
    const known = await configuredAnchors(configured);
    // Without a configured one, the uppermost of its own certificates.
    const uppermost = opened.chain.slice(-1).map((certificate) => ({ certificate }));
    const anchors = known.length > 0 ? known : uppermost;
    const signer = this.ports.certificates.verifyChain(opened.chain, anchors, now, { purpose: PURPOSE });
    if (!signer.trusted) throw new RegistrationCertificateRefusal(`its signer is not accepted (${signer.detail})`);
    this.#checkSignature(opened, signer);
    const certificate = parseRegistration(opened);
    const fault = findTimeProblem(certificate, now);
    if (fault !== undefined) throw new RegistrationCertificateRefusal(fault);
    await this.#checkStatus(configured, certificate, { chain: opened.chain, issuer: signer, anchors });
    const coverage = query && covers(certificate, query);
    if (coverage?.covered === false) throw new RegistrationCertificateRefusal(`it does not cover the query: ${coverage.gap}`);
    const issuing = issued && coversIssuing(certificate, issued);
    if (issuing?.covered === false) throw new RegistrationCertificateRefusal(`it does not cover what is issued: ${issuing.gap}`);
    return { ...certificate, jwt };
  }

  #checkSignature({ jws, algorithm }: OpenedCertificate, { key }: Trusted): void {
    // RFC 8725 section 3.1: the algorithm follows from the key.
    const isGood = algorithmOf(key) === algorithm && this.ports.signatures.verify(key, jws.signingInput, jws.signature);
    if (!isGood) throw new RegistrationCertificateRefusal('its signature is not that of its signer');
  }

  async #checkStatus(
    configured: TenantConfiguration,
    { status }: RegistrationCertificate,
    signer: { readonly chain: readonly string[]; readonly issuer: Trusted; readonly anchors: readonly TrustAnchor[] },
  ): Promise<void> {
    if (status === undefined) return;
    // Other mechanisms than lists are not looked at (Token Status List section 6.1).
    if (isJsonObject(status) && status['status_list'] === undefined) return;
    try {
      const reference = parseStatusReference({ status });
      if (reference !== undefined) await this.ports.statusVerifier.verify({ configured, reference, purpose: PURPOSE, ...signer });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw statusRefusal(error);
    }
  }
}

type Trusted = Extract<ChainVerdict, { trusted: true }>;

async function configuredAnchors(configured: TenantConfiguration): Promise<readonly TrustAnchor[]> {
  const pems = (await configured.registrarConfiguration())?.registrationCertificateAnchors ?? [];
  return configured.derive('registration-certificate-anchors', () =>
    pems.flatMap((pem) => (parsePemCertificates(pem, 1) ?? []).map((certificate) => ({ certificate }))),
  );
}

function statusRefusal({ reason }: Refusal): RegistrationCertificateRefusal {
  if (reason === 'status_revoked') return new RegistrationCertificateRefusal('it is revoked');
  if (reason === 'status_suspended') return new RegistrationCertificateRefusal('it is suspended');
  const isTemporary = reason === 'status_unavailable';
  return new RegistrationCertificateRefusal(`its status cannot be told (${reason})`, isTemporary);
}
