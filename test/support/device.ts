import { sign } from 'node:crypto';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import type { CborMap } from '../../domain/formats/cbor/values.ts';
import { buildCoseSign1, protectedHeaderOf, sigStructure } from '../../domain/formats/cose/sign1.ts';
import { deviceAuthenticationBytes } from '../../domain/formats/mdoc/device-auth.ts';
import type { HolderKey } from './raw-wallet.ts';

/** An mdoc on a device: base64url as issued, and its device key. */
export type DeviceMdoc = { readonly text: string; readonly holder: Pick<HolderKey, 'privateKey'>; readonly docType: string };

/**
 * A DeviceResponse with one document, base64url.
 * @param transcript SessionTranscript, CBOR.
 * @param shownElements the disclosed elements; all by default.
 */
export function deviceResponse({ text, holder, docType }: DeviceMdoc, transcript: Buffer, shownElements?: readonly string[]): string {
  const issuerSigned = decodeCbor(Buffer.from(text, 'base64url')) as CborMap;
  const encoded = embed(encodeCbor(new Map()));
  const protectedBytes = protectedHeaderOf('ES256');
  const toSign = sigStructure(protectedBytes, deviceAuthenticationBytes(transcript, docType, encoded));
  const signature = sign('sha256', toSign, { key: holder.privateKey, dsaEncoding: 'ieee-p1363' });
  const deviceSignature = buildCoseSign1({ protectedBytes, unprotectedHeader: new Map(), signature });
  const deviceSigned = { nameSpaces: encoded, deviceAuth: { deviceSignature } };
  const issuerSignedPart = shownElements === undefined ? issuerSigned : selectElements(issuerSigned, shownElements);
  const document = { docType, issuerSigned: issuerSignedPart, deviceSigned };
  return encodeCbor({ version: '1.0', documents: [document], status: 0 }).toString('base64url');
}

function selectElements(issuerSigned: CborMap, shownElements: readonly string[]): CborMap {
  const nameSpaces = [...(issuerSigned.get('nameSpaces') as CborMap)].map(([namespace, items]) => {
    const selected = (items as readonly { content: Buffer }[]).filter(({ content }) =>
      shownElements.includes(String((decodeCbor(content) as CborMap).get('elementIdentifier'))),
    );
    return [namespace, selected] as const;
  });
  return new Map([...issuerSigned, ['nameSpaces', new Map(nameSpaces) as never]]);
}
