import { hash } from 'node:crypto';
import { toJson } from '../../domain/formats/cbor/to-json.ts';
import { parseCoseKey } from '../../domain/formats/cose/key.ts';
import { parseCoseAlgorithm, parseX5chain, sigStructure } from '../../domain/formats/cose/sign1.ts';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { deviceAuthenticationBytes, parseDeviceElements } from '../../domain/formats/mdoc/device-auth.ts';
import { assertDocumentSigner, MDL_DOCUMENT_SIGNER, parseDocumentSigner } from '../../domain/formats/mdoc/document-signer.ts';
import { assertIssuingLocation, DRIVING_LICENCE, type MdlProfile } from '../../domain/formats/mdoc/driving-licence.ts';
import { type JsonNameSpaces, verifyItems } from '../../domain/formats/mdoc/items.ts';
import { assertValidity, type MobileSecurityObject, parseMso, type ValidityInfo } from '../../domain/formats/mdoc/mso.ts';
import { type ParsedMdoc, parseDeviceResponse } from '../../domain/formats/mdoc/parse.ts';
import { defined } from '../../domain/shared/defined.ts';
import { algorithmOf, type PublicJwk, type SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { NonceRefusal, Refusal } from '../../domain/shared/refusal.ts';
import { parseStatusReference, type StatusReference } from '../../domain/status-lists/reference.ts';
import type { Certificates, ChainVerdict, TrustAnchor } from '../ports/certificates.ts';
import type { Signatures } from '../ports/signatures.ts';

export type ExpectedMdoc = {
  readonly now: Date;
  /** CBOR SessionTranscripts of the request: see `session-transcript.ts`. One of them has to be the signed one. */
  readonly transcripts: readonly Buffer[];
  readonly docType: string;
  readonly anchors: readonly TrustAnchor[];
  /** True if the query requires a device signature. One that is present is always verified. */
  readonly holderBinding: boolean;
  /** Applies HAIP 1.0 sections 6.1 and 6.1.1. */
  readonly haip?: boolean;
  /** Accepts only certificates with agreed algorithms. */
  readonly agreedOnly?: boolean;
  /** Requirements for signers of driving licences; ISO/IEC 18013-5 by default. */
  readonly mdlProfile?: MdlProfile;
  /** Allowed algorithms of issuer and device. A COSE number and its fully specified twin have one name. */
  readonly issuerAlgorithms: readonly SigningAlgorithm[];
  readonly deviceAlgorithms: readonly SigningAlgorithm[];
  /** The request. When it is absent, the device signature is not checked, which only tests of a query use. */
  readonly isTrial?: true;
};

export type CheckedMdoc = {
  readonly docType: string;
  readonly namespaces: JsonNameSpaces;
  readonly issuer: Extract<ChainVerdict, { trusted: true }>;
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  /** SHA-256 of the signed payload. */
  readonly signedHash: string;
  readonly validity: ValidityInfo;
  readonly statusReference?: StatusReference;
  readonly holderKey?: PublicJwk;
  /** Elements that only the device signed: never used for a queried claim. */
  readonly deviceSigned: JsonNameSpaces;
};

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates };

/**
 * Verifies a DeviceResponse with one document: form, issuer, times, elements, device signature (OpenID4VP 1.0 appendix B.2, ISO/IEC 18013-5
 * section 9.3). Neither the status nor, except for the document type, the match with the query is checked.
 * @param text base64url without padding.
 * @throws Refusal with the reason.
 */
export function verifyMdoc(ports: Ports, text: string, expected: ExpectedMdoc): CheckedMdoc {
  const parsedMdoc = parseDeviceResponse(text);
  try {
    return verifyParsed(ports, parsedMdoc, expected);
  } catch (error) {
    throw error instanceof Refusal ? withNonceCheck(error, ports, parsedMdoc, expected) : error;
  }
}

/**
 * OpenID4VP 1.0 section 14.2.2: the transcript contains the nonce, so a device that signed another transcript answers another request,
 * even if another check failed first. Only the issuer's signature identifies the device.
 */
function withNonceCheck(refusal: Refusal, ports: Ports, parsedMdoc: ParsedMdoc, expected: ExpectedMdoc): Refusal {
  if (refusal.reason !== 'device_signature' && !answersAnotherRequest(ports, parsedMdoc, expected)) return refusal;
  return new NonceRefusal(refusal.reason, `${refusal.message}; the device signed no transcript of this request`);
}

function answersAnotherRequest(ports: Ports, { issuerAuth, ...document }: ParsedMdoc, expected: ExpectedMdoc): boolean {
  const { payload, protectedBytes, signature } = issuerAuth;
  const [leaf] = parseX5chain(issuerAuth.unprotectedHeader) ?? [];
  const key = leaf === undefined ? undefined : parseCertificate(Buffer.from(leaf, 'base64'))?.publicJwk;
  if (payload === undefined || key === undefined) return false;
  try {
    if (!ports.signatures.verify(key, sigStructure(protectedBytes, payload), signature)) return false;
    verifyDevice(ports, { issuerAuth, ...document }, parseMso(payload), expected);
    return false;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.reason === 'device_signature';
  }
}

function verifyParsed(ports: Ports, parsedMdoc: ParsedMdoc, expected: ExpectedMdoc): CheckedMdoc {
  const { issuer, chain, mso } = verifyIssuer(ports, parsedMdoc, expected);
  // ISO/IEC 18013-5 section 9.3.1
  if (parsedMdoc.docType !== mso.docType || parsedMdoc.docType !== expected.docType) throw new Refusal('doctype_mismatch');
  const namespaces = verifyItems(parsedMdoc.items, mso);
  if (isProfiled(expected)) assertIssuingLocation(signerOf(issuer, chain), namespaces);
  const device = verifyDevice(ports, parsedMdoc, mso, expected);
  const statusReference = mso.status === undefined ? undefined : parseStatusReference({ status: toJson(mso.status) });
  return {
    docType: mso.docType,
    namespaces,
    issuer,
    chain,
    signedHash: hash('sha256', parsedMdoc.issuerAuth.payload ?? Buffer.alloc(0), 'base64url'),
    validity: mso.validity,
    ...defined({ statusReference }),
    ...device,
  };
}

function verifyIssuer(
  ports: Ports,
  { issuerAuth }: ParsedMdoc,
  expected: ExpectedMdoc,
): Pick<CheckedMdoc, 'issuer' | 'chain'> & { readonly mso: MobileSecurityObject } {
  const { now, anchors, haip = false, agreedOnly = false } = expected;
  const algorithm = parseCoseAlgorithm(issuerAuth, expected.issuerAlgorithms, 'issuer_alg');
  const { payload, protectedBytes, signature } = issuerAuth;
  if (payload === undefined) throw new Refusal('malformed', 'issuerAuth has no payload');
  // ISO/IEC 18013-5 section 9.1.2.4: in the unprotected header
  const chain = parseX5chain(issuerAuth.unprotectedHeader);
  const [leaf] = chain ?? [];
  if (chain === undefined || leaf === undefined) throw new Refusal('issuer_key_unresolved', 'no x5chain');

  const verdict = ports.certificates.verifyChain(chain, anchors, now, { purpose: 'mdoc', haip, agreedOnly });
  const key = verdict.trusted ? verdict.key : parseCertificate(Buffer.from(leaf, 'base64'))?.publicJwk;
  if (key !== undefined) {
    // RFC 9053 section 2: the algorithm has to fit the key.
    if (algorithmOf(key) !== algorithm) throw new Refusal('issuer_alg', 'does not fit the key');
    // An invalid signature is reported before an untrusted chain.
    if (!ports.signatures.verify(key, sigStructure(protectedBytes, payload), signature)) throw new Refusal('issuer_signature');
  }
  if (!verdict.trusted) throw new Refusal(verdict.reason, verdict.detail);

  const signer = parseDocumentSigner(leaf);
  if (isProfiled(expected) && verdict.isPin !== true) assertDocumentSigner(signer, MDL_DOCUMENT_SIGNER);
  const mso = parseMso(payload);
  assertValidity(mso.validity, signer, now);
  return { issuer: verdict, chain, mso };
}

function isProfiled({ docType, mdlProfile }: ExpectedMdoc): boolean {
  return docType === DRIVING_LICENCE && mdlProfile !== 'none';
}

function signerOf({ anchorCertificate }: CheckedMdoc['issuer'], [certificate = '']: readonly string[]) {
  return { certificate, authority: anchorCertificate === certificate ? undefined : anchorCertificate };
}

function verifyDevice(
  { signatures }: Ports,
  { docType, deviceSigned }: ParsedMdoc,
  mso: MobileSecurityObject,
  expected: ExpectedMdoc,
): Pick<CheckedMdoc, 'holderKey' | 'deviceSigned'> {
  // HAIP 1.0 section 6.1: every mdoc is bound to a device and presented by it.
  const { holderBinding, haip = false, isTrial = false } = expected;
  if (isTrial) return { deviceSigned: {} };
  if (deviceSigned === undefined && !holderBinding && !haip) return { deviceSigned: {} };
  const auth = deviceSigned?.auth;
  if (deviceSigned === undefined || auth === undefined) throw new Refusal('device_auth_missing');
  // MACs are not offered (OpenID4VP 1.0 appendix B.2.2), so none is expected.
  if (auth === 'mac') throw new Refusal('device_alg', 'deviceMac was not offered');
  const algorithm = parseCoseAlgorithm(auth, expected.deviceAlgorithms, 'device_alg');
  const holderKey = parseCoseKey(mso.deviceKey);
  if (holderKey === undefined) throw new Refusal('holder_key_missing');
  if (algorithmOf(holderKey) !== algorithm) throw new Refusal('device_alg', 'does not fit the key');
  // ISO/IEC 18013-5 section 9.1.3.6: the payload is detached.
  if (auth.payload !== undefined) throw new Refusal('malformed', 'deviceSignature has a payload');

  const { nameSpaces } = deviceSigned;
  const isSigned = expected.transcripts.some((transcript) => {
    const payload = deviceAuthenticationBytes(transcript, docType, nameSpaces);
    return signatures.verify(holderKey, sigStructure(auth.protectedBytes, payload), auth.signature, 'once');
  });
  if (!isSigned) throw new Refusal('device_signature');
  return { holderKey, deviceSigned: parseDeviceElements(nameSpaces, mso.authorizations) };
}
