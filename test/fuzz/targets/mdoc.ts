import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { EncodedCbor, isArray, isMap } from '../../../domain/formats/cbor/values.ts';
import { parseCoseKey } from '../../../domain/formats/cose/key.ts';
import { sigStructure } from '../../../domain/formats/cose/sign1.ts';
import { deviceAuthenticationBytes, parseDeviceElements } from '../../../domain/formats/mdoc/device-auth.ts';
import { parseElementValue } from '../../../domain/formats/mdoc/element-values.ts';
import { verifyItems } from '../../../domain/formats/mdoc/items.ts';
import { assertValidity, parseMso } from '../../../domain/formats/mdoc/mso.ts';
import { parseDeviceResponse } from '../../../domain/formats/mdoc/parse.ts';
import { verifyDeviceTransactionData } from '../../../domain/formats/mdoc/transaction-data.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { parseJson } from '../../../domain/shared/json.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { NOW, TRANSCRIPT } from '../constants.ts';
import { ensure, isInstanceOfAny, type Target } from '../engine/target.ts';
import { CBOR_WORDS, KEYS, seed, text } from './seeds.ts';

const signatures = new NodeSignatures();
const expected = isInstanceOfAny(Refusal);
const ALWAYS = { notBefore: new Date(0), notAfter: new Date(8.64e15) };
const NOTHING = Buffer.alloc(0);

/** Everything that is done with a response, whether or not its signatures hold. */
function readAll(input: Buffer) {
  const { docType, issuerAuth, items, deviceSigned } = parseDeviceResponse(text(input));
  const payload = issuerAuth.payload ?? NOTHING;
  const mso = parseMso(payload);
  assertValidity(mso.validity, ALWAYS, NOW);
  const elements = verifyItems(items, mso);
  const key = parseCoseKey(mso.deviceKey);
  if (key === undefined || deviceSigned === undefined) return undefined;
  const { nameSpaces, auth } = deviceSigned;
  const deviceElements = parseDeviceElements(nameSpaces, mso.authorizations);
  if (auth === undefined || auth === 'mac') return undefined;
  const toVerify = sigStructure(issuerAuth.protectedBytes, payload);
  const device = sigStructure(auth.protectedBytes, deviceAuthenticationBytes(TRANSCRIPT, docType, nameSpaces));
  const isAccepted = signatures.verify(KEYS.issuer, toVerify, issuerAuth.signature) && signatures.verify(key, device, auth.signature);
  return { isAccepted, docType, elements, own: deviceElements };
}

const validReads = ['mdoc', 'mdoc-device-elements'].map((name) => readAll(seed(name)));

function response(input: Buffer): void {
  const parsed = readAll(input);
  if (parsed?.isAccepted !== true) return;
  // Elements may be omitted, but not added or changed.
  const isGood = validReads.some(
    (candidate) =>
      candidate?.docType === parsed.docType &&
      isDeepStrictEqual(candidate.own, parsed.own) &&
      containsAll(candidate.elements, parsed.elements),
  );
  ensure(isGood, 'a response that was changed is not accepted');
}

type NameSpaces = ReturnType<typeof verifyItems>;

function containsAll(allNames: NameSpaces, partNames: NameSpaces): boolean {
  return Object.entries(partNames).every(([namespace, elements]) =>
    Object.entries(elements).every(([name, value]) => isDeepStrictEqual(allNames[namespace]?.[name], value)),
  );
}

/** The digests are made of the items, so that changes get behind them. */
function items(input: Buffer): void {
  const nameSpaces = decodeCbor(input);
  if (!isMap(nameSpaces)) return;
  const digests = new Map<string, Map<number, Buffer>>();
  const encoded = new Map<string, readonly EncodedCbor[]>();
  for (const [name, list] of nameSpaces) {
    if (typeof name !== 'string' || !isArray(list)) return;
    const encodedItems = list.filter((item) => item instanceof EncodedCbor);
    encoded.set(name, encodedItems);
    digests.set(
      name,
      new Map(encodedItems.map(({ content, encoded: itemBytes }) => [digestIdOf(content), hash('sha256', itemBytes, 'buffer')])),
    );
  }
  const mso = { hashName: 'sha256', valueDigests: digests } as never;
  verifyItems(encoded, mso);
}

function digestIdOf(content: Buffer): number {
  try {
    const item = decodeCbor(content);
    return isMap(item) ? Number(item.get('digestID')) : -1;
  } catch {
    return -1;
  }
}

const parsedSeeds = ['mdoc', 'mdoc-device-elements'].map((name) => parseDeviceResponse(text(seed(name))));
const authorizations = { nameSpaces: new Set(['own']), dataElements: new Map([['other', new Set(['hash'])]]) };
const confirming = { namespace: 'own', element: 'hash', text: 'e30', algorithms: ['sha-256', 'other'], required: false };

function deviceElements(input: Buffer): void {
  const elements = parseDeviceElements(embed(input), authorizations);
  const allowed = Object.entries(elements).every(
    ([namespace, elements]) => namespace === 'own' || Object.keys(elements).every((name) => namespace === 'other' && name === 'hash'),
  );
  ensure(allowed, 'a device shows no element that the issuer did not allow');
  verifyDeviceTransactionData(elements, [confirming]);
}

export const MDOC: readonly Target[] = [
  { name: 'mdoc', expected, seeds: [seed('mdoc'), seed('mdoc-device-elements')], dictionary: CBOR_WORDS, decode: response },
  {
    name: 'mdoc-items',
    expected,
    seeds: parsedSeeds.map((parsedSeed) => encodeCbor(parsedSeed.items)),
    dictionary: CBOR_WORDS,
    decode: items,
  },
  {
    name: 'mso',
    expected,
    seeds: parsedSeeds.map(({ issuerAuth }) => issuerAuth.payload ?? NOTHING),
    dictionary: [...CBOR_WORDS, 'SHA-512', 'SHA-384', '1.0', '2.0', 'expectedUpdate', 'status', 'keyAuthorizations'],
    decode: (input) => {
      const { validity, deviceKey } = parseMso(input);
      parseCoseKey(deviceKey);
      assertValidity(validity, ALWAYS, NOW);
    },
  },
  {
    name: 'mdoc-device-elements',
    expected,
    seeds: parsedSeeds.map(({ deviceSigned }) => deviceSigned?.nameSpaces.content ?? NOTHING),
    dictionary: [...CBOR_WORDS, 'own', 'other', 'hash'],
    decode: deviceElements,
  },
  {
    name: 'mdoc-element-values',
    expected: isInstanceOfAny(Failure),
    seeds: [
      '"1980-01-01"',
      '{"birth_date":"1980-01-01","portrait":"_9j_4A"}',
      '{"$type":"tdate","value":"2020-01-01T00:00:00Z"}',
      '[{"$type":"bytes","value":"AAAA"}]',
    ],
    dictionary: ['$type', 'value', 'full-date', 'tdate', 'bytes', 'text', 'birth_date', 'portrait', 'data:image/png;base64,'],
    decode: (input) => {
      const json = parseJson(text(input), 60);
      if (json === undefined) return;
      for (const name of ['birth_date', 'portrait', 'biometric_template_face', 'x']) {
        decodeCbor(encodeCbor(parseElementValue('n', name, json)));
      }
    },
  },
];
