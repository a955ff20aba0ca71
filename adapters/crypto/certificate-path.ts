import { type Certificate, KEY_USAGE } from '../../domain/formats/der/certificate.ts';
import { isSameName } from '../../domain/formats/der/name.ts';
import { allowsPurpose, type CertificatePurpose } from '../../domain/keys/certificate-purpose.ts';
import { CLOCK_TOLERANCE_MS } from '../../domain/shared/clock-tolerance.ts';
import type { RefusalReason } from '../../domain/shared/refusal.ts';

export type PathFault = { readonly reason: RefusalReason; readonly detail: string };

const ED25519 = '1.3.101.112';
/** ECDSA and RSA (PKCS #1) with SHA-256, SHA-384 or SHA-512, and Ed25519; RSASSA-PSS counts by its parameters. */
const SIGNATURE_ALGORITHMS = new Set([
  '1.2.840.10045.4.3.2',
  '1.2.840.10045.4.3.3',
  '1.2.840.10045.4.3.4',
  '1.2.840.113549.1.1.11',
  '1.2.840.113549.1.1.12',
  '1.2.840.113549.1.1.13',
  ED25519,
]);
const CURVES = new Set(['prime256v1', 'secp384r1', 'secp521r1']);

/**
 * Critical extensions that are processed here, or that require nothing of a verifier without restrictions on policies: subject and
 * authority key identifiers, key usage, subject alternative name, basic constraints, CRL distribution points, certificate policies,
 * extended key usage. Name constraints are not among them, so a path with critical ones is rejected.
 */
const PROCESSED_EXTENSIONS = new Set(['14', '15', '17', '19', '31', '32', '35', '37'].map((arc) => `2.5.29.${arc}`));
const NAME_CONSTRAINTS = '2.5.29.30';

/** RFC 5280 section 6.1.3 (a)(2) */
export function findValidityProblem(certificate: Certificate, now: Date): PathFault | undefined {
  const time = now.getTime();
  const begins = certificate.notBefore.getTime() - CLOCK_TOLERANCE_MS;
  const ends = certificate.notAfter.getTime() + CLOCK_TOLERANCE_MS;
  if (time >= begins && time <= ends) return undefined;
  return { reason: 'certificate_expired', detail: `"${certificate.subjectText}" is not valid now` };
}

/**
 * Returns true if names and key identifiers refer to `issuer` as the issuer of `certificate`. They are not proof, because anyone can write
 * them.
 */
export function namesIssuer(certificate: Certificate, issuer: Certificate): boolean {
  // RFC 5280 section 6.1.3 (a)(4)
  if (!isSameName(certificate.issuer, issuer.subject)) return false;
  const { authorityKeyId } = certificate;
  // RFC 5280 section 4.2.1.1
  if (authorityKeyId !== undefined && issuer.subjectKeyId !== undefined) {
    if (authorityKeyId !== issuer.subjectKeyId) return false;
  }
  const { oid, pss } = certificate.signatureAlgorithm;
  return (SIGNATURE_ALGORITHMS.has(oid) || pss !== undefined) && isStrong(issuer);
}

/**
 * Returns true if each certificate was signed by the next one; `namesIssuer` was checked before. RFC 5280 section 6.1.3 (a)(1), from the
 * anchor down: no key is used before a trusted one vouches for it.
 * @param path leaf first, its anchor last.
 */
export function isSigned(path: readonly Certificate[]): boolean {
  return path
    .map((certificate, position) => ({ certificate, issuer: path[position + 1] }))
    .reverse()
    .every(({ certificate, issuer }) => issuer === undefined || certificate.x509.verify(issuer.publicKey));
}

/** Returns true if its key or its signature is on an Edwards curve, which the ECCG has not agreed on (ARF 3.0 OIA_03). */
export function isOfEdwards({ publicKey, signatureAlgorithm }: Certificate): boolean {
  return publicKey.asymmetricKeyType === 'ed25519' || signatureAlgorithm.oid === ED25519;
}

/** The size of RSA keys was checked when the certificate was parsed. */
function isStrong({ publicKey }: Certificate): boolean {
  const { namedCurve = '' } = publicKey.asymmetricKeyDetails ?? {};
  if (publicKey.asymmetricKeyType === 'rsa' || publicKey.asymmetricKeyType === 'rsa-pss') return true;
  if (publicKey.asymmetricKeyType === 'ec') return CURVES.has(namedCurve);
  return publicKey.asymmetricKeyType === 'ed25519';
}

export function isCa(certificate: Certificate): boolean {
  return certificate.basicConstraints?.ca === true;
}

export function isSelfIssued(certificate: Certificate): boolean {
  return isSameName(certificate.subject, certificate.issuer);
}

/**
 * Checks the permissions of each certificate of a path; its signatures were verified before.
 * @param path leaf first, its anchor last.
 */
export function findRightsProblem(path: readonly Certificate[], purpose: CertificatePurpose): PathFault | undefined {
  for (const [position, certificate] of path.entries()) {
    const { criticalExtensions, extensions } = certificate;
    for (const extension of criticalExtensions) {
      // RFC 5280 section 4.2
      if (!PROCESSED_EXTENSIONS.has(extension)) return profileProblem(certificate, `critical ${extension}`);
    }
    // RFC 5280 section 4.2.1.10: a constraint that cannot be checked must not be ignored.
    if (extensions.has(NAME_CONSTRAINTS)) return profileProblem(certificate, 'name constraints');
    if (position === 0) continue;
    const isAnchor = position === path.length - 1;
    const issuersBelow = path.slice(1, position).filter((issuerCertificate) => !isSelfIssued(issuerCertificate)).length;
    const fault =
      findIssuerProblem(certificate, issuersBelow, isAnchor) ??
      // An anchor is trusted by configuration.
      (isAnchor ? undefined : findPurposeProblem(certificate, purpose));
    if (fault !== undefined) return fault;
  }
  const leaf = path[0];
  return leaf === undefined ? undefined : findLeafProblem(leaf, purpose);
}

function findIssuerProblem(certificate: Certificate, issuersBelow: number, isAnchor: boolean): PathFault | undefined {
  const { basicConstraints, keyUsage } = certificate;
  const fault = (detail: string): PathFault => ({ reason: 'untrusted_chain', detail: `"${certificate.subjectText}": ${detail}` });
  // RFC 5280 section 6.1.4 (k); an anchor is trusted by configuration, so only the value of the extension counts.
  if (basicConstraints?.ca !== true) return fault('not a CA');
  if (!isAnchor && !basicConstraints.critical) return fault('basic constraints are not critical');
  // RFC 5280 section 6.1.4 (l) and (m)
  if (basicConstraints.pathLength !== undefined && issuersBelow > basicConstraints.pathLength) return fault('path too long');
  // RFC 5280 section 6.1.4 (n), and section 4.2.1.3 for the presence
  const maySign = keyUsage === undefined ? isAnchor : keyUsage.has(KEY_USAGE.keyCertSign);
  return maySign ? undefined : fault('may not sign certificates');
}

/** RFC 5280 section 4.2.1.12; for certificates between leaf and anchor it restricts what they may certify. */
function findPurposeProblem(certificate: Certificate, purpose: CertificatePurpose): PathFault | undefined {
  if (allowsPurpose(certificate, purpose)) return undefined;
  return profileProblem(certificate, `its extended key usage does not allow signers of a ${purpose}`);
}

/** Requirements for a certificate that signs data, pinned or not. */
export function findLeafProblem(leaf: Certificate, purpose: CertificatePurpose): PathFault | undefined {
  if (isCa(leaf)) return profileProblem(leaf, 'a CA must not sign credentials');
  // RFC 5280 section 4.2.1.3
  if (leaf.keyUsage !== undefined && !leaf.keyUsage.has(KEY_USAGE.digitalSignature)) return profileProblem(leaf, 'no digitalSignature');
  // Credentials and lists are signed by ECDSA and EdDSA only, responses of OCSP responders also by RSA.
  if (leaf.publicJwk === undefined && purpose !== 'OCSP answer') return profileProblem(leaf, 'unsupported key');
  return findPurposeProblem(leaf, purpose);
}

function profileProblem(certificate: Certificate, detail: string): PathFault {
  return { reason: 'certificate_profile', detail: `"${certificate.subjectText}": ${detail}` };
}
