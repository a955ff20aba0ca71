import { hash } from 'node:crypto';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { type DisclosedObject, type ProcessedClaims, processDisclosures } from '../../domain/formats/sd-jwt/disclosures.ts';
import {
  assertKeyBindingHeader,
  assertNonce,
  type ExpectedBinding,
  verifyKeyBindingClaims,
} from '../../domain/formats/sd-jwt/key-binding.ts';
import { type ParsedSdJwt, parseSdJwt } from '../../domain/formats/sd-jwt/parse.ts';
import {
  assertNoForbiddenDisclosures,
  assertRecipients,
  parseCertificateChain,
  parseHolderKey,
  parseIssuerHeader,
  parseSdJwtVc,
  type SdJwtVc,
} from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, type PublicJwk } from '../../domain/shared/jwk.ts';
import { NonceRefusal, Refusal } from '../../domain/shared/refusal.ts';
import { parseStatusReference, type StatusReference } from '../../domain/status-lists/reference.ts';
import { type Authentication, parseAuthentication } from '../../domain/verification/sca/authentication.ts';
import type { Certificates, ChainVerdict, TrustAnchor } from '../ports/certificates.ts';
import type { Signatures } from '../ports/signatures.ts';

export type ExpectedSdJwtVc = ExpectedBinding & {
  readonly anchors: readonly TrustAnchor[];
  /** True if the query requires a key binding JWT. One that is present is always verified. */
  readonly holderBinding: boolean;
  /** Audiences that the credential itself may be restricted to. */
  readonly recipients?: readonly string[];
  /** Applies HAIP 1.0 sections 6.1 and 6.1.1. */
  readonly haip?: boolean;
  /** Accepts only certificates with agreed algorithms. */
  readonly agreedOnly?: boolean;
  /** Expected transaction data that TS12 applies to, and the requested response mode. */
  readonly authenticatedTransactionData?: readonly string[];
  readonly responseMode?: string;
  /** Allowed `alg` of the credential and of the key binding JWT (OpenID4VP 1.0 appendix B.3.4). */
  readonly sdJwtAlgorithms: readonly string[];
  readonly kbAlgorithms: readonly string[];
  /** The request. When it is absent, key binding and audience are not checked, which only tests of a query use. */
  readonly isTrial?: true;
};

export type CheckedSdJwtVc = SdJwtVc & {
  /** Arrays may contain placeholders, see `isUndisclosed`. */
  readonly claims: DisclosedObject;
  /** The signed payload with its digests, which every presentation contains. */
  readonly alwaysVisible: JsonObject;
  readonly header: JsonObject;
  /** SHA-256 of the signed data. */
  readonly signedHash: string;
  readonly issuer: Extract<ChainVerdict, { trusted: true }>;
  readonly statusReference?: StatusReference;
  readonly holderKey?: PublicJwk;
  /** The expected transaction data that the holder confirmed. */
  readonly confirmedTransactionData: readonly string[];
  /** Authentication of the user, if confirmed transaction data require it. */
  readonly authentication?: Authentication;
};

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates };

/**
 * Verifies a presented SD-JWT VC: form, issuer, disclosures, times, key binding (RFC 9901 section 7.3). Neither the
 * status nor the match with the query is checked.
 * @throws Refusal with the reason; `NonceRefusal` when the whole response has to be rejected.
 */
export function verifySdJwtVc(ports: Ports, text: string, expected: ExpectedSdJwtVc): CheckedSdJwtVc {
  const parsedSdJwt = expected.isTrial === true ? withoutBinding(parseSdJwt(text)) : parseSdJwt(text);
  try {
    return verifyParsed(ports, parsedSdJwt, expected);
  } catch (error) {
    throw error instanceof Refusal ? withNonceCheck(error, parsedSdJwt, expected) : error;
  }
}

function withoutBinding({ issuer, disclosures, boundText }: ParsedSdJwt): ParsedSdJwt {
  return { issuer, disclosures, boundText };
}

/** OpenID4VP 1.0 section 14.2.2: a nonce of another request rejects the response, even if another check failed first. */
function withNonceCheck(refusal: Refusal, { keyBinding }: ParsedSdJwt, { nonce }: ExpectedSdJwtVc): Refusal {
  if (keyBinding === undefined || refusal instanceof NonceRefusal) return refusal;
  try {
    assertNonce(keyBinding.payload, nonce);
    return refusal;
  } catch {
    return new NonceRefusal(refusal.reason, `${refusal.message}; its nonce is of another request`);
  }
}

function verifyParsed(ports: Ports, parsedSdJwt: ParsedSdJwt, expected: ExpectedSdJwtVc): CheckedSdJwtVc {
  // RFC 9901 section 9.5: the request decides if key binding is required, not the presentation.
  if (expected.holderBinding && parsedSdJwt.keyBinding === undefined) throw new Refusal('holder_binding_missing');
  const { header, payload } = parsedSdJwt.issuer;
  // HAIP 1.0 section 6.1: a key-bound credential is presented with key binding.
  const isTrial = expected.isTrial === true;
  const isBound = expected.haip === true && !isTrial && payload['cnf'] !== undefined;
  if (isBound && parsedSdJwt.keyBinding === undefined) throw new Refusal('holder_binding_missing', 'HAIP');

  const issuer = verifyIssuer(ports, parsedSdJwt, expected);
  const processed = processDisclosures(payload, parsedSdJwt.disclosures);
  assertNoForbiddenDisclosures(payload, processed);
  const credential = parseSdJwtVc(payload, processed, expected.now);
  if (!isTrial) assertRecipients(processed.claims['aud'], expected.recipients);
  const binding = verifyBinding(ports, parsedSdJwt, processed, expected);
  const statusReference = parseStatusReference(payload);
  return {
    ...credential,
    claims: processed.claims,
    alwaysVisible: payload,
    header,
    signedHash: hash('sha256', parsedSdJwt.issuer.signingInput, 'base64url'),
    issuer,
    ...defined({ statusReference }),
    ...binding,
  };
}

function verifyIssuer(ports: Ports, parsedSdJwt: ParsedSdJwt, expected: ExpectedSdJwtVc): CheckedSdJwtVc['issuer'] {
  const { header, signingInput, signature } = parsedSdJwt.issuer;
  const algorithm = parseIssuerHeader(header, expected.sdJwtAlgorithms);
  const chain = parseCertificateChain(header);
  const { now, anchors, haip = false, agreedOnly = false } = expected;
  const verdict = ports.certificates.verifyChain(chain, anchors, now, { purpose: 'SD-JWT VC', haip, agreedOnly });
  const key = verdict.trusted ? verdict.key : leafKey(chain[0]);
  if (key !== undefined) {
    // RFC 8725 section 3.1: the algorithm follows from the key.
    if (algorithmOf(key) !== algorithm) throw new Refusal('issuer_alg', 'does not fit the key');
    // An invalid signature is reported before an untrusted chain.
    if (!ports.signatures.verify(key, signingInput, signature)) throw new Refusal('issuer_signature');
  }
  if (!verdict.trusted) throw new Refusal(verdict.reason, verdict.detail);
  return verdict;
}

function leafKey(certificate: string | undefined): PublicJwk | undefined {
  return certificate === undefined ? undefined : parseCertificate(Buffer.from(certificate, 'base64'))?.publicJwk;
}

function verifyBinding(
  ports: Ports,
  parsedSdJwt: ParsedSdJwt,
  processed: ProcessedClaims,
  expected: ExpectedSdJwtVc,
): Pick<CheckedSdJwtVc, 'holderKey' | 'confirmedTransactionData' | 'authentication'> {
  const { keyBinding, issuer, boundText } = parsedSdJwt;
  if (keyBinding === undefined) return { confirmedTransactionData: [] };
  const { header, payload, signingInput, signature } = keyBinding;
  const holderKey = parseHolderKey(issuer.payload);
  assertKeyBindingHeader(header, holderKey, expected.kbAlgorithms);
  // RFC 9901 section 7.3 step 5b
  if (!ports.signatures.verify(holderKey, signingInput, signature, 'once')) throw new Refusal('kb_signature');
  const confirmed = verifyKeyBindingClaims(payload, boundText, processed.hashName, expected);
  const authenticatedTexts = expected.authenticatedTransactionData ?? [];
  const isAuthenticated = confirmed.some((text) => authenticatedTexts.includes(text));
  return {
    holderKey,
    confirmedTransactionData: confirmed,
    ...(isAuthenticated && { authentication: parseAuthentication(payload, expected.responseMode ?? '') }),
  };
}
