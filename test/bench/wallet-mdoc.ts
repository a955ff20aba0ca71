import { sign } from 'node:crypto';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type CborMap, EncodedCbor } from '../../domain/formats/cbor/values.ts';
import { buildCoseSign1, protectedHeaderOf, sigStructure } from '../../domain/formats/cose/sign1.ts';
import { deviceAuthenticationBytes } from '../../domain/formats/mdoc/device-auth.ts';
import { redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import type { Bound, WalletKey } from './wallet-crypto.ts';

/** What a wallet shows of an mdoc, encoded once so that presenting costs little more than a signature. */
export type ShownMdoc = { readonly docType: string; readonly issuerSigned: EncodedCbor };

const NO_ELEMENTS = embed(encodeCbor(new Map()));
const PROTECTED = protectedHeaderOf('ES256');

/** Keeps the named elements. @param issued IssuerSigned, base64url. */
export function showing(issued: string, docType: string, names: readonly string[]): ShownMdoc {
  const issuerSigned = decodeCbor(Buffer.from(issued, 'base64url')) as CborMap;
  const nameSpaces = [...(issuerSigned.get('nameSpaces') as CborMap)].map(([namespace, items]) => {
    const kept = (items as readonly EncodedCbor[]).filter(({ content }) =>
      names.includes(String((decodeCbor(content) as CborMap).get('elementIdentifier'))),
    );
    return [namespace, kept] as const;
  });
  const bytes = encodeCbor(new Map([...issuerSigned, ['nameSpaces', new Map(nameSpaces)]]));
  return { docType, issuerSigned: new EncodedCbor(bytes, bytes) };
}

/** @returns DeviceResponse, base64url (ISO/IEC 18013-5 section 8.3.2.1.2.2, OpenID4VP 1.0 appendix B.2.6.1). */
export function presentMdoc(
  { docType, issuerSigned }: ShownMdoc,
  key: WalletKey,
  { clientId, nonce, responseUri, encryptionKey: { x, y } }: Bound,
): string {
  const encryptionKey = { kty: 'EC', crv: 'P-256', x, y } as const;
  const transcript = redirectTranscript({ clientId, nonce, responseUri, encryptionKey });
  const toSign = sigStructure(PROTECTED, deviceAuthenticationBytes(transcript, docType, NO_ELEMENTS));
  const signature = sign('sha256', toSign, { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  const deviceSignature = buildCoseSign1({
    protectedBytes: PROTECTED,
    unprotectedHeader: new Map(),
    signature,
  });
  const deviceSigned = { nameSpaces: NO_ELEMENTS, deviceAuth: { deviceSignature } };
  const document = { docType, issuerSigned, deviceSigned };
  return encodeCbor({ version: '1.0', documents: [document], status: 0 }).toString('base64url');
}
