import { hash } from 'node:crypto';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { type DisclosedObject, type ProcessedClaims, processDisclosures } from '../../domain/formats/sd-jwt/disclosures.ts';
import {
  assertKeyBindingHeader,
  assertNonce,
  type ExpectedBinding,
  verifyKeyBindingClaims,
} from '../../domain/formats/sd-jwt/key-binding.ts';
import { type OpenedSdJwt, parseSdJwt } from '../../domain/formats/sd-jwt/parse.ts';
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
  /** Whether the query demands a key binding JWT. One that is there is checked in any case. */
  readonly holderBinding: boolean;
  /** Whom the credential itself may name as its recipients. */
  readonly recipients?: readonly string[];
  /** Whether HAIP 1.0 sections 6.1 and 6.1.1 are held to. */
  readonly haip?: boolean;
  /** Whether certificates count by agreed algorithms alone. */
  readonly agreedOnly?: boolean;
  /** Of the expected transaction data that which TS12 is held to, and the response mode that was asked for. */
  readonly authenticatedTransactionData?: readonly string[];
  readonly responseMode?: string;
  /** Allowed `alg` of the credential and of the key binding JWT (OpenID4VP 1.0 appendix B.3.4). */
  readonly sdJwtAlgorithms: readonly string[];
  readonly kbAlgorithms: readonly string[];
  /** There is no request, so key binding and recipients are not looked at; true only where nothing is accepted by it. */
  readonly isTrial?: true;
};

export type CheckedSdJwtVc = SdJwtVc & {
  /** Arrays may hold what `isUndisclosed` tells. */
  readonly claims: DisclosedObject;
  /** The issuer's payload as it was signed, digests and all: what every presentation shows. */
  readonly alwaysVisible: JsonObject;
  readonly header: JsonObject;
  /** SHA-256 of what the issuer signed. */
  readonly signedHash: string;
  readonly issuer: Extract<ChainVerdict, { trusted: true }>;
  readonly statusReference?: StatusReference;
  /** The key that the holder proved. */
  readonly holderKey?: PublicJwk;
  /** The expected transaction data that the holder confirmed. */
  readonly confirmedTransactionData: readonly string[];
  /** How the user was authenticated, where it confirms what wants to know. */
  readonly authentication?: Authentication;
};

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates };

/**
 * Checks one presented SD-JWT VC: form, issuer, disclosures, times, key binding (RFC 9901 section 7.3). Its
 * status is not asked for, and whether it answers the query is not looked at.
 * @throws Refusal with the reason; `NonceRefusal` when the whole response has to be refused.
 */
export function verifySdJwtVc(ports: Ports, text: string, expected: ExpectedSdJwtVc): CheckedSdJwtVc {
  const opened = expected.isTrial === true ? withoutBinding(parseSdJwt(text)) : parseSdJwt(text);
  try {
    return verifyOpened(ports, opened, expected);
  } catch (error) {
    throw error instanceof Refusal ? asForeign(error, opened, expected) : error;
  }
}

function withoutBinding({ issuer, disclosures, boundText }: OpenedSdJwt): OpenedSdJwt {
  return { issuer, disclosures, boundText };
}

/** OpenID4VP 1.0 section 14.2.2: a foreign nonce refuses the response also when something else is wrong first. */
function asForeign(refusal: Refusal, { keyBinding }: OpenedSdJwt, { nonce }: ExpectedSdJwtVc): Refusal {
  if (keyBinding === undefined || refusal instanceof NonceRefusal) return refusal;
  try {
    assertNonce(keyBinding.payload, nonce);
    return refusal;
  } catch {
    return new NonceRefusal(refusal.reason, `${refusal.message}; its nonce is of another request`);
  }
}

function verifyOpened(ports: Ports, opened: OpenedSdJwt, expected: ExpectedSdJwtVc): CheckedSdJwtVc {
  // RFC 9901 section 9.5: the request decides whether key binding is needed, not what has arrived.
  if (expected.holderBinding && opened.keyBinding === undefined) throw new Refusal('holder_binding_missing');
  const { header, payload } = opened.issuer;
  // HAIP 1.0 section 6.1: what is bound to a key is presented with it.
  const isTrial = expected.isTrial === true;
  const isBound = expected.haip === true && !isTrial && payload['cnf'] !== undefined;
  if (isBound && opened.keyBinding === undefined) throw new Refusal('holder_binding_missing', 'HAIP');

  const issuer = verifyIssuer(ports, opened, expected);
  const processed = processDisclosures(payload, opened.disclosures);
  assertNoForbiddenDisclosures(payload, processed);
  const credential = parseSdJwtVc(payload, processed, expected.now);
  if (!isTrial) assertRecipients(processed.claims['aud'], expected.recipients);
  const binding = verifyBinding(ports, opened, processed, expected);
  const statusReference = parseStatusReference(payload);
  return {
    ...credential,
    claims: processed.claims,
    alwaysVisible: payload,
    header,
    signedHash: hash('sha256', opened.issuer.signingInput, 'base64url'),
    issuer,
    ...defined({ statusReference }),
    ...binding,
  };
}

function verifyIssuer(ports: Ports, opened: OpenedSdJwt, expected: ExpectedSdJwtVc): CheckedSdJwtVc['issuer'] {
  const { header, signingInput, signature } = opened.issuer;
  const algorithm = parseIssuerHeader(header, expected.sdJwtAlgorithms);
  const chain = parseCertificateChain(header);
  const { now, anchors, haip = false, agreedOnly = false } = expected;
  const verdict = ports.certificates.verifyChain(chain, anchors, now, { purpose: 'SD-JWT VC', haip, agreedOnly });
  const key = verdict.trusted ? verdict.key : leafKey(chain[0]);
  if (key !== undefined) {
    // RFC 8725 section 3.1: the algorithm follows from the key.
    if (algorithmOf(key) !== algorithm) throw new Refusal('issuer_alg', 'does not fit the key');
    // A broken signature is reported before a chain that does not hold.
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
  opened: OpenedSdJwt,
  processed: ProcessedClaims,
  expected: ExpectedSdJwtVc,
): Pick<CheckedSdJwtVc, 'holderKey' | 'confirmedTransactionData' | 'authentication'> {
  const { keyBinding, issuer, boundText } = opened;
  if (keyBinding === undefined) return { confirmedTransactionData: [] };
  const { header, payload, signingInput, signature } = keyBinding;
  const holderKey = parseHolderKey(issuer.payload);
  assertKeyBindingHeader(header, holderKey, expected.kbAlgorithms);
  // RFC 9901 section 7.3 step 5b
  if (!ports.signatures.verify(holderKey, signingInput, signature, 'once')) throw new Refusal('kb_signature');
  const confirmed = verifyKeyBindingClaims(payload, boundText, processed.hashName, expected);
  const wanted = expected.authenticatedTransactionData ?? [];
  const isAuthenticated = confirmed.some((text) => wanted.includes(text));
  return {
    holderKey,
    confirmedTransactionData: confirmed,
    ...(isAuthenticated && { authentication: parseAuthentication(payload, expected.responseMode ?? '') }),
  };
}
