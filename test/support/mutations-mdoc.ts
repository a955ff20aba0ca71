import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type Cbor, type CborMap, EncodedCbor, isArray, isBytes, isMap, Tagged, tdate } from '../../domain/formats/cbor/values.ts';
import { coseKey, coseSign1, type MdocBase, type MdocOverrides, presentMdoc } from './mdoc-maker.ts';
import { flipBits, type Mutation, spreadPositions } from './mutations.ts';
import { newKey } from './raw-wallet.ts';
import { type CertifiedKey, certify, DOCUMENT_SIGNER } from './test-certificates.ts';

/** Another encoding of one CBOR item. */
export type Rewriting = { readonly kind: string; readonly description: string; readonly bytes: Buffer };

type RewritingWay = readonly [string, Buffer];
/** Encodes one nested value, or returns undefined for the standard encoding. */
type Hook = (path: string, value: Cbor) => Buffer | undefined;

const CBOR_BREAK = Buffer.of(0xff);

/** A CBOR head with an argument of `bytes` bytes, the shortest form by default (RFC 8949 section 3). */
export function cborHead(major: number, argument: number, bytes?: 0 | 1 | 2 | 4): Buffer {
  const size = bytes ?? (argument < 24 ? 0 : argument < 256 ? 1 : argument < 65_536 ? 2 : 4);
  if (size === 0) return Buffer.of((major << 5) | argument);
  const buffer = Buffer.alloc(1 + size);
  buffer.writeUInt8((major << 5) | (size === 1 ? 24 : size === 2 ? 25 : 26));
  buffer.writeUIntBE(argument, 1, size);
  return buffer;
}

/** Encodes an item, except for the values that `hook` encodes. Items in byte strings are not changed. */
function write(value: Cbor, path: string, hook: Hook): Buffer {
  const override = hook(path, value);
  if (override !== undefined) return override;
  if (isArray(value)) {
    return Buffer.concat([cborHead(4, value.length), ...value.map((one, position) => write(one, `${path}/${position}`, hook))]);
  }
  if (isMap(value)) {
    const entries = [...value].flatMap(([key, one]) => [encodeCbor(key), write(one, `${path}/${key}`, hook)]);
    return Buffer.concat([cborHead(5, value.size), ...entries]);
  }
  if (value instanceof Tagged) return Buffer.concat([cborHead(6, Number(value.tag)), write(value.value, `${path}!`, hook)]);
  return encodeCbor(value);
}

function findNodes(root: Cbor): readonly (readonly [string, Cbor])[] {
  const nodes: [string, Cbor][] = [];
  write(root, '', (path, value) => {
    nodes.push([path, value]);
    return undefined;
  });
  return nodes;
}

/** Every item in `root` in every encoding of this file: valid, invalid and with another meaning. */
export function cborRewritings(root: Cbor): readonly Rewriting[] {
  return findNodes(root).flatMap(([path, value]) =>
    rewriteItem(value).map(([kind, bytes]) => ({
      kind,
      description: path === '' ? 'the whole' : path,
      bytes: write(root, '', (position) => (position === path ? bytes : undefined)),
    })),
  );
}

function rewriteItem(value: Cbor): readonly RewritingWay[] {
  const encodedItem = encodeCbor(value);
  return [
    ['a tag in front', Buffer.concat([cborHead(6, 1000), encodedItem])],
    ['null instead', encodeCbor(null)],
    ['zero instead', encodeCbor(0)],
    ['text instead', encodeCbor('x')],
    ['an empty map instead', encodeCbor(new Map())],
    ['an empty list instead', encodeCbor([])],
    ['a list around it', Buffer.concat([cborHead(4, 1), encodedItem])],
    ...(isMap(value) ? rewriteMap([...value]) : []),
    ...(isArray(value) ? rewriteList(value) : []),
    ...(isBytes(value) ? rewriteString(2, value) : []),
    ...(typeof value === 'string' ? rewriteString(3, Buffer.from(value)) : []),
    ...(typeof value === 'number' && value >= 0 ? rewriteNumber(value) : []),
    ...(value instanceof EncodedCbor ? rewriteEmbedded(value) : []),
  ];
}

function rewriteMap(entries: readonly (readonly [string | number | bigint, Cbor])[]): readonly RewritingWay[] {
  const pairs = entries.map(([key, value]) => Buffer.concat([encodeCbor(key), encodeCbor(value)]));
  const joined = Buffer.concat(pairs);
  const count = pairs.length;
  return [
    ['entries in another order', Buffer.concat([cborHead(5, count), ...pairs.toReversed()])],
    ['an indefinite length', Buffer.concat([Buffer.of(0xbf), joined, CBOR_BREAK])],
    ['an indefinite length without end', Buffer.concat([Buffer.of(0xbf), joined])],
    ['a long head', Buffer.concat([cborHead(5, count, 4), joined])],
    ['a length too large', Buffer.concat([cborHead(5, count + 1), joined])],
    ['a length too small', Buffer.concat([cborHead(5, Math.max(count - 1, 0)), joined])],
    ['a huge length', Buffer.concat([Buffer.from('bb00ffffffffffffff', 'hex'), joined])],
    ['an additional entry', Buffer.concat([cborHead(5, count + 1), joined, encodeCbor('more'), encodeCbor(0)])],
    ['an entry with a key of bytes', Buffer.concat([cborHead(5, count + 1), joined, Buffer.of(0x41, 0x61, 0)])],
    ...pairs.flatMap((pair, position): RewritingWay[] => [
      ['an entry left out', Buffer.concat([cborHead(5, count - 1), ...pairs.toSpliced(position, 1)])],
      ['an entry twice', Buffer.concat([cborHead(5, count + 1), joined, pair])],
      [
        'a key twice, first with another value',
        Buffer.concat([cborHead(5, count + 1), encodeCbor(entries[position]?.[0] ?? 0), encodeCbor(0), joined]),
      ],
      [
        'a key twice, then with another value',
        Buffer.concat([cborHead(5, count + 1), joined, encodeCbor(entries[position]?.[0] ?? 0), encodeCbor(0)]),
      ],
    ]),
  ];
}

function rewriteList(values: readonly Cbor[]): readonly RewritingWay[] {
  const elements = values.map((value) => encodeCbor(value));
  const joined = Buffer.concat(elements);
  const count = elements.length;
  return [
    ['elements in another order', Buffer.concat([cborHead(4, count), ...elements.toReversed()])],
    ['an indefinite length', Buffer.concat([Buffer.of(0x9f), joined, CBOR_BREAK])],
    ['an indefinite length without end', Buffer.concat([Buffer.of(0x9f), joined])],
    ['a long head', Buffer.concat([cborHead(4, count, 2), joined])],
    ['a length too large', Buffer.concat([cborHead(4, count + 1), joined])],
    ['a length too small', Buffer.concat([cborHead(4, Math.max(count - 1, 0)), joined])],
    ['a huge length', Buffer.concat([Buffer.from('9b00ffffffffffffff', 'hex'), joined])],
    ['an additional element', Buffer.concat([cborHead(4, count + 1), joined, encodeCbor(null)])],
    ...elements.flatMap((element, position): RewritingWay[] => [
      ['an element left out', Buffer.concat([cborHead(4, count - 1), ...elements.toSpliced(position, 1)])],
      ['an element twice', Buffer.concat([cborHead(4, count + 1), joined, element])],
    ]),
  ];
}

function rewriteString(major: 2 | 3, content: Buffer): readonly RewritingWay[] {
  const { length } = content;
  const half = length >> 1;
  const chunks = [content.subarray(0, half), content.subarray(half)];
  return [
    ['a long head', Buffer.concat([cborHead(major, length, 4), content])],
    ['a length too large', Buffer.concat([cborHead(major, length + 1), content])],
    ['a length too small', Buffer.concat([cborHead(major, Math.max(length - 1, 0)), content])],
    ['a byte more', Buffer.concat([cborHead(major, length + 1), content, Buffer.of(0x41)])],
    ['a byte less', Buffer.concat([cborHead(major, Math.max(length - 1, 0)), content.subarray(0, -1)])],
    ['a string of the other major type', Buffer.concat([cborHead(major === 2 ? 3 : 2, length), content])],
    [
      'in chunks',
      Buffer.concat([Buffer.of((major << 5) | 31), ...chunks.flatMap((one) => [cborHead(major, one.length), one]), CBOR_BREAK]),
    ],
  ];
}

function rewriteNumber(value: number): readonly RewritingWay[] {
  return [
    ['a long head', cborHead(0, value, 4)],
    ['a negative number', cborHead(1, value)],
    ['the next number', cborHead(0, value + 1)],
    ['a float of the value', Buffer.concat([Buffer.of(0xfa), float(value)])],
  ];
}

function float(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeFloatBE(value);
  return buffer;
}

function rewriteEmbedded({ content }: EncodedCbor): readonly RewritingWay[] {
  const string = Buffer.concat([cborHead(2, content.length), content]);
  return [
    ['without tag 24', string],
    ['its content alone', content],
    ['another tag', Buffer.concat([cborHead(6, 25), string])],
    ['tag 24 twice', Buffer.concat([cborHead(6, 24), cborHead(6, 24), string])],
    ['a long head of the tag', Buffer.concat([cborHead(6, 24, 2), string])],
    ['a long head of its bytes', Buffer.concat([cborHead(6, 24), cborHead(2, content.length, 4), content])],
    ['a byte more inside', Buffer.concat([cborHead(6, 24), cborHead(2, content.length + 1), content, Buffer.of(0)])],
  ];
}

type Raw = Omit<Mutation, 'base'>;
const badMutation = (kind: string, description: string, text: string): Raw => ({ kind, description, text, nature: 'bad' });

/** Mutations of the bytes of a response: other bytes, other lengths and other encodings. */
export function corruptMdocs(name: string, text: string, random: () => number): readonly Mutation[] {
  const bytes = Buffer.from(text, 'base64url');
  const joined: Raw[] = [
    ...flipBits(bytes, 300, random).map((one) => badMutation('a bit flipped', one.description, one.bytes.toString('base64url'))),
    ...spreadPositions(text.length, 30, random).map((position) => badMutation('truncated', `at ${position}`, text.slice(0, position))),
    ...spreadPositions(bytes.length, 20, random).map((position) =>
      badMutation(
        'a byte left out',
        `${position}`,
        Buffer.concat([bytes.subarray(0, position), bytes.subarray(position + 1)]).toString('base64url'),
      ),
    ),
    ...['=', '==', 'A', 'AA', 'AAAA', ' ', '\n', '\0', '~'].flatMap((suffix) => [
      badMutation('extended', `by ${JSON.stringify(suffix)}`, text + suffix),
      badMutation('extended', `by ${JSON.stringify(suffix)} in front`, suffix + text),
    ]),
    badMutation('another spelling of base64url', 'the other alphabet', bytes.toString('base64')),
    badMutation('another spelling of base64url', 'hex', bytes.toString('hex')),
    ...cborRewritings(decodeCbor(bytes)).map((one) => badMutation(`CBOR: ${one.kind}`, one.description, one.bytes.toString('base64url'))),
  ];
  return joined.map((one) => ({ base: name, ...one }));
}

/** Replacements of a value: absent, and items of every type. */
const REPLACEMENT_ITEMS: readonly (readonly [string, Cbor | 'absent'])[] = [
  ['left out', 'absent'],
  ['null', null],
  ['true', true],
  ['zero', 0],
  ['a negative number', -7],
  ['a fraction', 0.5],
  ['empty text', ''],
  ['text', 'x'],
  ['bytes', Buffer.from('x')],
  ['an empty list', []],
  ['an empty map', new Map()],
  ['a date', new Tagged(0, '2027-01-01T00:00:00Z')],
];

const set = (name: string, value: Cbor | 'absent') => (map: Map<string, Cbor>) => {
  if (value === 'absent') map.delete(name);
  else map.set(name, value);
};
type Items = Parameters<NonNullable<MdocOverrides['changeItems']>>[0];
const withShownItem = (change: (joined: readonly EncodedCbor[]) => readonly Cbor[]): MdocOverrides => ({
  changeItems: (items: Items) => new Map([...items].map(([namespace, joined]) => [namespace, change(joined)])),
});
const withRewrittenItem = (change: (item: Map<string, Cbor>) => void) => (one: EncodedCbor) => {
  const copy = new Map(decodeCbor(one.content) as ReadonlyMap<string, Cbor>);
  change(copy);
  return embed(encodeCbor(copy));
};

function itemMutations(): Readonly<Record<string, readonly [MdocOverrides, Mutation['nature']]>> {
  const one = (position: number, change: (item: Map<string, Cbor>) => void): MdocOverrides =>
    withShownItem((joined) => joined.with(position, withRewrittenItem(change)(joined[position] as EncodedCbor)));
  return {
    'items in another order': [withShownItem((joined) => joined.toReversed()), 'same'],
    'an item left out': [withShownItem((joined) => joined.slice(1)), 'same'],
    'all items left out': [withShownItem(() => []), 'bad'],
    'an item twice': [withShownItem((joined) => [...joined, joined[0] as EncodedCbor]), 'bad'],
    'an item without tag': [withShownItem((joined) => joined.map(({ content }) => content)), 'bad'],
    'items of two kinds': [withShownItem((joined) => [...joined, 'x']), 'bad'],
    'a second namespace': [
      { changeItems: (items) => new Map([...items, ['org.other', [...items.values()][0] ?? []]]) as unknown as CborMap },
      'bad',
    ],
    'another namespace': [
      { changeItems: (items) => new Map([...items].map(([, joined]) => ['org.other', joined])) as unknown as CborMap },
      'bad',
    ],
    ...Object.fromEntries(
      ['digestID', 'random', 'elementIdentifier', 'elementValue'].flatMap((name) =>
        REPLACEMENT_ITEMS.flatMap(([description, value]) => [
          [`${name} of an item: ${description}`, [one(1, set(name, value)), 'bad'] as const],
        ]),
      ),
    ),
    'an additional property of an item': [one(0, (item) => item.set('more', 0)), 'bad'],
    'the digestIDs of two items exchanged': [
      withShownItem((joined) =>
        joined.map((encodedItem, position) =>
          withRewrittenItem((item) => item.set('digestID', position === 0 ? 1 : position === 1 ? 0 : position))(encodedItem),
        ),
      ),
      'bad',
    ],
    'the values of two items exchanged': [
      withShownItem(([first, second, ...rest]) => {
        const elementOfItem = (encodedItem: EncodedCbor | undefined) =>
          encodedItem === undefined ? null : (decodeCbor(encodedItem.content) as CborMap).get('elementValue');
        return [
          withRewrittenItem((item) => item.set('elementValue', elementOfItem(second)))(first as EncodedCbor),
          withRewrittenItem((item) => item.set('elementValue', elementOfItem(first)))(second as EncodedCbor),
          ...rest,
        ];
      }),
      'bad',
    ],
  };
}

const MSO = ['version', 'digestAlgorithm', 'valueDigests', 'deviceKeyInfo', 'docType', 'validityInfo'];
const DAY = 86_400;

/** Changes of every property of the mobile security object, signed by the issuer and by attackers. */
async function reissueMutations(base: MdocBase): Promise<readonly (readonly [string, string, MdocOverrides, Mutation['nature']])[]> {
  const attacker = await certify({ name: 'Stranger, C=GB' });
  const encodedItem = { key: attacker, chain: [attacker.certificate] };
  const signers: readonly (readonly [string, MdocOverrides, Mutation['nature']])[] = [
    ['by the issuer', {}, 'issuer'],
    ['by another key', { issuerKey: attacker }, 'bad'],
    ['by an attacker', { issuer: encodedItem }, 'bad'],
    [
      "by an attacker, with the attacker's certificate first",
      { issuer: { ...encodedItem, chain: [...encodedItem.chain, ...base.issuer.chain] } },
      'bad',
    ],
    [
      "by an attacker, with the attacker's certificate last",
      { issuer: { ...encodedItem, chain: [...base.issuer.chain, ...encodedItem.chain] } },
      'bad',
    ],
  ];
  const position = (days: number) => tdate(new Date((base.now + days * DAY) * 1000));
  const withValidity = (signed: number, from: number, until: number) =>
    set('validityInfo', { signed: position(signed), validFrom: position(from), validUntil: position(until) });
  const changes: readonly (readonly [string, (mso: Map<string, Cbor>) => void])[] = [
    ...MSO.flatMap((name) => REPLACEMENT_ITEMS.map(([description, value]) => [`${name}: ${description}`, set(name, value)] as const)),
    ['expired', withValidity(-30, -30, -1)],
    ['not valid yet', withValidity(-1, 1, 30)],
    ['signed in the future', withValidity(1, -1, 30)],
    ['signed before the certificate', withValidity(-2000, -1, 30)],
    ['SHA-1', set('digestAlgorithm', 'SHA-1')],
    ['a hash that was not used', set('digestAlgorithm', 'SHA-512')],
    ['the key of another device', set('deviceKeyInfo', { deviceKey: coseKey(newKey()) })],
    ['another docType', set('docType', 'org.other')],
    ['version 1.1', set('version', '1.1')],
    ['version 2.0', set('version', '2.0')],
    ['an additional element', set('more', 1)],
  ];
  return signers.flatMap(([signerDescription, signing, nature]) =>
    changes.map(
      ([description, mso]) => [`the security object changed ${signerDescription}`, description, { ...signing, mso }, nature] as const,
    ),
  );
}

function deviceMutations(base: MdocBase): Readonly<Record<string, readonly [MdocOverrides, Mutation['nature']]>> {
  const mac: Cbor = [encodeCbor(new Map([[1, 5]])), new Map(), null, Buffer.alloc(32)];
  return {
    'another device': [{ holder: newKey() }, 'bad'],
    'another transcript': [{ transcript: encodeCbor([null, null, ['OpenID4VPHandover', Buffer.alloc(32)]]) }, 'bad'],
    'no transcript': [{ transcript: encodeCbor(null) }, 'bad'],
    'a MAC': [{ deviceAuth: () => ({ deviceMac: mac }) }, 'bad'],
    'a MAC beside the signature': [{ deviceAuth: (deviceSignature) => ({ deviceSignature, deviceMac: mac }) }, 'bad'],
    'neither signature nor MAC': [{ deviceAuth: () => ({}) }, 'bad'],
    'a payload that is not detached': [
      { deviceAuth: ([cborHead, header, , signature]) => ({ deviceSignature: [cborHead, header, Buffer.of(1), signature] }) },
      'bad',
    ],
    'an element without authorization': [{ deviceNameSpaces: { 'org.other': { x: 1 } } }, 'bad'],
    'an element in the name of the issuer': [
      { deviceNameSpaces: Object.fromEntries(Object.keys(base.elements).map((name) => [name, { family_name: 'x' }])) },
      'bad',
    ],
    'another docType of the document': [{ document: (encodedItem) => ({ ...encodedItem, docType: 'org.other' }) }, 'bad'],
    'no deviceSigned': [{ document: ({ deviceSigned: _, ...encodedItem }) => encodedItem }, 'bad'],
    'two documents': [
      {
        response: (encodedItem) => ({
          ...encodedItem,
          documents: [...(encodedItem['documents'] as Cbor[]), ...(encodedItem['documents'] as Cbor[])],
        }),
      },
      'bad',
    ],
    ...Object.fromEntries(
      [-8, -35, -36, -257, -37, 5, 0, 1, -65_535].flatMap(
        (alg) =>
          [
            [`the alg ${alg} of the device`, [{ deviceHeader: (cborHead) => cborHead.set(1, alg) }, 'bad'] as const],
            [`the alg ${alg} of the issuer`, [{ issuerHeader: (cborHead) => cborHead.set(1, alg) }, 'bad'] as const],
          ] as const,
      ),
    ),
    'the alg in the unprotected header': [
      {
        issuerHeader(cborHead, header) {
          cborHead.delete(1);
          header.set(1, -7);
        },
      },
      'bad',
    ],
    'the alg in both headers': [{ issuerHeader: (_, header) => header.set(1, -7) }, 'bad'],
    'an extension that is critical': [
      {
        issuerHeader(cborHead) {
          cborHead.set(2, [99]);
          cborHead.set(99, 1);
        },
      },
      'bad',
    ],
    'the chain in the protected header': [
      {
        issuerHeader(cborHead, header) {
          cborHead.set(33, header.get(33));
          header.delete(33);
        },
      },
      'bad',
    ],
    'the security object of another credential': [
      { issuerAuth: ([, header, payload]) => coseSign1(payload as Buffer, newKey(), { unprotected: header as Map<number, Cbor> }) },
      'bad',
    ],
    'the issuer tagged': [{ issuerAuth: (parts) => new Tagged(18, parts) }, 'bad'],
    'a status that is not OK': [{ response: (encodedItem) => ({ ...encodedItem, status: 10 }) }, 'bad'],
  };
}

async function certificateMutations(
  base: MdocBase,
  ca: CertifiedKey,
): Promise<Readonly<Record<string, readonly [MdocOverrides, Mutation['nature']]>>> {
  const { key, chain } = base.issuer;
  const certifyAs = (options: Omit<Parameters<typeof certify>[0], 'name'>) =>
    certify({ name: 'Issuer, C=GB', key, ...DOCUMENT_SIGNER, ...options });
  const withChain = (encodedItem: readonly string[], nature: Mutation['nature']) =>
    [{ issuer: { key, chain: encodedItem } }, nature] as const;
  const middle = await certify({ name: 'Middle, C=GB', by: ca, ca: true });
  return {
    'another certificate of the same key': withChain([(await certifyAs({ by: ca })).certificate], 'same'),
    'a certificate in between': withChain([(await certifyAs({ by: middle })).certificate, middle.certificate], 'same'),
    'a certificate in between that is missing': withChain([(await certifyAs({ by: middle })).certificate], 'bad'),
    'a certificate twice': withChain([...chain, ...chain], 'bad'),
    'the anchor behind': withChain([...chain, ca.certificate], 'same'),
    'a certificate that signed itself': withChain([(await certifyAs({})).certificate], 'bad'),
    'a certificate that has expired': withChain([(await certifyAs({ by: ca, until: '2026-12-01T00:00:00Z' })).certificate], 'bad'),
    'a CA as issuer': withChain([(await certifyAs({ by: ca, ca: true })).certificate], 'bad'),
    'a certificate of another key': withChain([(await certify({ name: 'Issuer, C=GB', by: ca, ...DOCUMENT_SIGNER })).certificate], 'bad'),
    'a certificate of another CA with the same name': withChain(
      [(await certifyAs({ by: await certify({ name: ca.name, ca: true }) })).certificate],
      'bad',
    ),
    'no certificate': [{ issuerHeader: (_, header) => header.delete(33) }, 'bad'],
  };
}

/** Mutations that issuers and devices sign, and forgeries by attackers. */
export async function signedMdocMutations(name: string, base: MdocBase, ca: CertifiedKey): Promise<readonly Mutation[]> {
  const makeMutations = (kind: string, cases: Readonly<Record<string, readonly [MdocOverrides, Mutation['nature']]>>): Mutation[] =>
    Object.entries(cases).map(([description, [overrides, nature]]) => ({
      base: name,
      kind,
      description,
      text: presentMdoc(base, overrides),
      nature,
    }));
  const security = (await reissueMutations(base)).map(
    ([kind, description, overrides, nature]): Mutation => ({ base: name, kind, description, text: presentMdoc(base, overrides), nature }),
  );
  return [
    ...makeMutations('items changed', itemMutations()),
    ...makeMutations('the device changed', deviceMutations(base)),
    ...makeMutations('certificates changed', await certificateMutations(base, ca)),
    ...security,
  ];
}
