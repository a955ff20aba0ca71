import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type Cbor, type CborMap, EncodedCbor, isArray, isBytes, isMap, Tagged, tdate } from '../../domain/formats/cbor/values.ts';
import { coseKey, coseSign1, type MdocBase, type MdocOverrides, presentMdoc } from './mdoc-maker.ts';
import { flipBits, type Mutation, spreadPositions } from './mutations.ts';
import { newKey } from './raw-wallet.ts';
import { type CertifiedKey, certify, DOCUMENT_SIGNER } from './test-certificates.ts';

/** One item written in another way. */
export type Rewriting = { readonly kind: string; readonly description: string; readonly bytes: Buffer };

type Way = readonly [string, Buffer];
/** Writes a member that is somewhere in an item, or leaves it to the rule. */
type Hook = (path: string, value: Cbor) => Buffer | undefined;

const BREAK = Buffer.of(0xff);

/** A head of the length that `bytes` says, shortest unless told (RFC 8949 section 3). */
export function cborHead(major: number, argument: number, bytes?: 0 | 1 | 2 | 4): Buffer {
  const size = bytes ?? (argument < 24 ? 0 : argument < 256 ? 1 : argument < 65_536 ? 2 : 4);
  if (size === 0) return Buffer.of((major << 5) | argument);
  const buffer = Buffer.alloc(1 + size);
  buffer.writeUInt8((major << 5) | (size === 1 ? 24 : size === 2 ? 25 : 26));
  buffer.writeUIntBE(argument, 1, size);
  return buffer;
}

/** The item as it is, but for what `hook` writes. Items in byte strings are left alone. */
function write(value: Cbor, path: string, hook: Hook): Buffer {
  const own = hook(path, value);
  if (own !== undefined) return own;
  if (isArray(value)) {
    return Buffer.concat([cborHead(4, value.length), ...value.map((one, at) => write(one, `${path}/${at}`, hook))]);
  }
  if (isMap(value)) {
    const entries = [...value].flatMap(([key, one]) => [encodeCbor(key), write(one, `${path}/${key}`, hook)]);
    return Buffer.concat([cborHead(5, value.size), ...entries]);
  }
  if (value instanceof Tagged) return Buffer.concat([cborHead(6, Number(value.tag)), write(value.value, `${path}!`, hook)]);
  return encodeCbor(value);
}

function nodesOf(root: Cbor): readonly (readonly [string, Cbor])[] {
  const nodes: [string, Cbor][] = [];
  write(root, '', (path, value) => {
    nodes.push([path, value]);
    return undefined;
  });
  return nodes;
}

/** Every item in `root`, written in every way that this file knows: legal, illegal and something else. */
export function cborRewritings(root: Cbor): readonly Rewriting[] {
  return nodesOf(root).flatMap(([path, value]) =>
    waysOf(value).map(([kind, bytes]) => ({
      kind,
      description: path === '' ? 'the whole' : path,
      bytes: write(root, '', (at) => (at === path ? bytes : undefined)),
    })),
  );
}

function waysOf(value: Cbor): readonly Way[] {
  const own = encodeCbor(value);
  return [
    ['a tag in front', Buffer.concat([cborHead(6, 1000), own])],
    ['null instead', encodeCbor(null)],
    ['zero instead', encodeCbor(0)],
    ['text instead', encodeCbor('x')],
    ['an empty map instead', encodeCbor(new Map())],
    ['an empty list instead', encodeCbor([])],
    ['a list around it', Buffer.concat([cborHead(4, 1), own])],
    ...(isMap(value) ? waysOfMap([...value]) : []),
    ...(isArray(value) ? waysOfList(value) : []),
    ...(isBytes(value) ? waysOfString(2, value) : []),
    ...(typeof value === 'string' ? waysOfString(3, Buffer.from(value)) : []),
    ...(typeof value === 'number' && value >= 0 ? waysOfNumber(value) : []),
    ...(value instanceof EncodedCbor ? waysOfEmbedded(value) : []),
  ];
}

function waysOfMap(entries: readonly (readonly [string | number | bigint, Cbor])[]): readonly Way[] {
  const pairs = entries.map(([key, value]) => Buffer.concat([encodeCbor(key), encodeCbor(value)]));
  const all = Buffer.concat(pairs);
  const count = pairs.length;
  return [
    ['entries in another order', Buffer.concat([cborHead(5, count), ...pairs.toReversed()])],
    ['an indefinite length', Buffer.concat([Buffer.of(0xbf), all, BREAK])],
    ['an indefinite length without end', Buffer.concat([Buffer.of(0xbf), all])],
    ['a long head', Buffer.concat([cborHead(5, count, 4), all])],
    ['a length too large', Buffer.concat([cborHead(5, count + 1), all])],
    ['a length too small', Buffer.concat([cborHead(5, Math.max(count - 1, 0)), all])],
    ['a huge length', Buffer.concat([Buffer.from('bb00ffffffffffffff', 'hex'), all])],
    ['an entry more', Buffer.concat([cborHead(5, count + 1), all, encodeCbor('more'), encodeCbor(0)])],
    ['an entry with a key of bytes', Buffer.concat([cborHead(5, count + 1), all, Buffer.of(0x41, 0x61, 0)])],
    ...pairs.flatMap((pair, at): Way[] => [
      ['an entry left out', Buffer.concat([cborHead(5, count - 1), ...pairs.toSpliced(at, 1)])],
      ['an entry twice', Buffer.concat([cborHead(5, count + 1), all, pair])],
      [
        'a key twice, first with another value',
        Buffer.concat([cborHead(5, count + 1), encodeCbor(entries[at]?.[0] ?? 0), encodeCbor(0), all]),
      ],
      [
        'a key twice, then with another value',
        Buffer.concat([cborHead(5, count + 1), all, encodeCbor(entries[at]?.[0] ?? 0), encodeCbor(0)]),
      ],
    ]),
  ];
}

function waysOfList(values: readonly Cbor[]): readonly Way[] {
  const members = values.map((value) => encodeCbor(value));
  const all = Buffer.concat(members);
  const count = members.length;
  return [
    ['members in another order', Buffer.concat([cborHead(4, count), ...members.toReversed()])],
    ['an indefinite length', Buffer.concat([Buffer.of(0x9f), all, BREAK])],
    ['an indefinite length without end', Buffer.concat([Buffer.of(0x9f), all])],
    ['a long head', Buffer.concat([cborHead(4, count, 2), all])],
    ['a length too large', Buffer.concat([cborHead(4, count + 1), all])],
    ['a length too small', Buffer.concat([cborHead(4, Math.max(count - 1, 0)), all])],
    ['a huge length', Buffer.concat([Buffer.from('9b00ffffffffffffff', 'hex'), all])],
    ['a member more', Buffer.concat([cborHead(4, count + 1), all, encodeCbor(null)])],
    ...members.flatMap((member, at): Way[] => [
      ['a member left out', Buffer.concat([cborHead(4, count - 1), ...members.toSpliced(at, 1)])],
      ['a member twice', Buffer.concat([cborHead(4, count + 1), all, member])],
    ]),
  ];
}

function waysOfString(major: 2 | 3, content: Buffer): readonly Way[] {
  const { length } = content;
  const half = length >> 1;
  const chunks = [content.subarray(0, half), content.subarray(half)];
  return [
    ['a long head', Buffer.concat([cborHead(major, length, 4), content])],
    ['a length too large', Buffer.concat([cborHead(major, length + 1), content])],
    ['a length too small', Buffer.concat([cborHead(major, Math.max(length - 1, 0)), content])],
    ['a byte more', Buffer.concat([cborHead(major, length + 1), content, Buffer.of(0x41)])],
    ['a byte less', Buffer.concat([cborHead(major, Math.max(length - 1, 0)), content.subarray(0, -1)])],
    ['the other kind of string', Buffer.concat([cborHead(major === 2 ? 3 : 2, length), content])],
    ['in chunks', Buffer.concat([Buffer.of((major << 5) | 31), ...chunks.flatMap((one) => [cborHead(major, one.length), one]), BREAK])],
  ];
}

function waysOfNumber(value: number): readonly Way[] {
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

function waysOfEmbedded({ content }: EncodedCbor): readonly Way[] {
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
const bad = (kind: string, description: string, text: string): Raw => ({ kind, description, text, nature: 'bad' });

/** Other bytes, other lengths and other ways of writing the same, in a response whose bytes are given. */
export function corruptMdocs(name: string, text: string, random: () => number): readonly Mutation[] {
  const bytes = Buffer.from(text, 'base64url');
  const all: Raw[] = [
    ...flipBits(bytes, 300, random).map((one) => bad('a bit flipped', one.description, one.bytes.toString('base64url'))),
    ...spreadPositions(text.length, 30, random).map((at) => bad('truncated', `at ${at}`, text.slice(0, at))),
    ...spreadPositions(bytes.length, 20, random).map((at) =>
      bad('a byte left out', `${at}`, Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]).toString('base64url')),
    ),
    ...['=', '==', 'A', 'AA', 'AAAA', ' ', '\n', '\0', '~'].flatMap((more) => [
      bad('extended', `by ${JSON.stringify(more)}`, text + more),
      bad('extended', `by ${JSON.stringify(more)} in front`, more + text),
    ]),
    bad('another spelling of base64url', 'the other alphabet', bytes.toString('base64')),
    bad('another spelling of base64url', 'hex', bytes.toString('hex')),
    ...cborRewritings(decodeCbor(bytes)).map((one) => bad(`CBOR: ${one.kind}`, one.description, one.bytes.toString('base64url'))),
  ];
  return all.map((one) => ({ base: name, ...one }));
}

/** What is written in the place of a member: nothing, and items of every type. */
const OTHER_ITEMS: readonly (readonly [string, Cbor | 'absent'])[] = [
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
const shownAs = (change: (all: readonly EncodedCbor[]) => readonly Cbor[]): MdocOverrides => ({
  changeItems: (items: Items) => new Map([...items].map(([namespace, all]) => [namespace, change(all)])),
});
const rewrittenItem = (change: (item: Map<string, Cbor>) => void) => (one: EncodedCbor) => {
  const copy = new Map(decodeCbor(one.content) as ReadonlyMap<string, Cbor>);
  change(copy);
  return embed(encodeCbor(copy));
};

function itemsOf(): Readonly<Record<string, readonly [MdocOverrides, Mutation['nature']]>> {
  const one = (at: number, change: (item: Map<string, Cbor>) => void): MdocOverrides =>
    shownAs((all) => all.with(at, rewrittenItem(change)(all[at] as EncodedCbor)));
  return {
    'items in another order': [shownAs((all) => all.toReversed()), 'same'],
    'an item left out': [shownAs((all) => all.slice(1)), 'same'],
    'all items left out': [shownAs(() => []), 'bad'],
    'an item twice': [shownAs((all) => [...all, all[0] as EncodedCbor]), 'bad'],
    'an item without tag': [shownAs((all) => all.map(({ content }) => content)), 'bad'],
    'items of two kinds': [shownAs((all) => [...all, 'x']), 'bad'],
    'a second namespace': [
      { changeItems: (items) => new Map([...items, ['org.other', [...items.values()][0] ?? []]]) as unknown as CborMap },
      'bad',
    ],
    'another namespace': [
      { changeItems: (items) => new Map([...items].map(([, all]) => ['org.other', all])) as unknown as CborMap },
      'bad',
    ],
    ...Object.fromEntries(
      ['digestID', 'random', 'elementIdentifier', 'elementValue'].flatMap((name) =>
        OTHER_ITEMS.flatMap(([description, value]) => [[`${name} of an item: ${description}`, [one(1, set(name, value)), 'bad'] as const]]),
      ),
    ),
    'a member of an item more': [one(0, (item) => item.set('more', 0)), 'bad'],
    'the digestIDs of two items exchanged': [
      shownAs((all) => all.map((own, at) => rewrittenItem((item) => item.set('digestID', at === 0 ? 1 : at === 1 ? 0 : at))(own))),
      'bad',
    ],
    'the values of two items exchanged': [
      shownAs(([first, second, ...rest]) => {
        const elementOf = (own: EncodedCbor | undefined) =>
          own === undefined ? null : (decodeCbor(own.content) as CborMap).get('elementValue');
        return [
          rewrittenItem((item) => item.set('elementValue', elementOf(second)))(first as EncodedCbor),
          rewrittenItem((item) => item.set('elementValue', elementOf(first)))(second as EncodedCbor),
          ...rest,
        ];
      }),
      'bad',
    ],
  };
}

const MSO = ['version', 'digestAlgorithm', 'valueDigests', 'deviceKeyInfo', 'docType', 'validityInfo'];
const DAY = 86_400;

/** Every member of the security object changed, signed by its issuer and by strangers. */
async function reissued(base: MdocBase): Promise<readonly (readonly [string, string, MdocOverrides, Mutation['nature']])[]> {
  const stranger = await certify({ name: 'Stranger, C=GB' });
  const own = { key: stranger, chain: [stranger.certificate] };
  const signers: readonly (readonly [string, MdocOverrides, Mutation['nature']])[] = [
    ['by the issuer', {}, 'issuer'],
    ['by another key', { issuerKey: stranger }, 'bad'],
    ['by a stranger', { issuer: own }, 'bad'],
    ['by a stranger in front', { issuer: { ...own, chain: [...own.chain, ...base.issuer.chain] } }, 'bad'],
    ['by a stranger behind', { issuer: { ...own, chain: [...base.issuer.chain, ...own.chain] } }, 'bad'],
  ];
  const at = (days: number) => tdate(new Date((base.now + days * DAY) * 1000));
  const times = (signed: number, from: number, until: number) =>
    set('validityInfo', { signed: at(signed), validFrom: at(from), validUntil: at(until) });
  const changes: readonly (readonly [string, (mso: Map<string, Cbor>) => void])[] = [
    ...MSO.flatMap((name) => OTHER_ITEMS.map(([description, value]) => [`${name}: ${description}`, set(name, value)] as const)),
    ['expired', times(-30, -30, -1)],
    ['not valid yet', times(-1, 1, 30)],
    ['signed in the future', times(1, -1, 30)],
    ['signed before the certificate', times(-2000, -1, 30)],
    ['SHA-1', set('digestAlgorithm', 'SHA-1')],
    ['a hash that was not used', set('digestAlgorithm', 'SHA-512')],
    ['the key of another device', set('deviceKeyInfo', { deviceKey: coseKey(newKey()) })],
    ['another docType', set('docType', 'org.other')],
    ['version 1.1', set('version', '1.1')],
    ['version 2.0', set('version', '2.0')],
    ['a member more', set('more', 1)],
  ];
  return signers.flatMap(([who, signing, nature]) =>
    changes.map(([description, mso]) => [`the security object changed ${who}`, description, { ...signing, mso }, nature] as const),
  );
}

function devices(base: MdocBase): Readonly<Record<string, readonly [MdocOverrides, Mutation['nature']]>> {
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
    'an element that nobody allowed': [{ deviceNameSpaces: { 'org.other': { x: 1 } } }, 'bad'],
    'an element in the name of the issuer': [
      { deviceNameSpaces: Object.fromEntries(Object.keys(base.elements).map((name) => [name, { family_name: 'x' }])) },
      'bad',
    ],
    'another docType of the document': [{ document: (own) => ({ ...own, docType: 'org.other' }) }, 'bad'],
    'no deviceSigned': [{ document: ({ deviceSigned: _, ...own }) => own }, 'bad'],
    'two documents': [
      { response: (own) => ({ ...own, documents: [...(own['documents'] as Cbor[]), ...(own['documents'] as Cbor[])] }) },
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
    'the security object of somebody else': [
      { issuerAuth: ([, header, payload]) => coseSign1(payload as Buffer, newKey(), { unprotected: header as Map<number, Cbor> }) },
      'bad',
    ],
    'the issuer tagged': [{ issuerAuth: (parts) => new Tagged(18, parts) }, 'bad'],
    'a status that is not OK': [{ response: (own) => ({ ...own, status: 10 }) }, 'bad'],
  };
}

async function certificates(
  base: MdocBase,
  authority: CertifiedKey,
): Promise<Readonly<Record<string, readonly [MdocOverrides, Mutation['nature']]>>> {
  const { key, chain } = base.issuer;
  const of = (options: Omit<Parameters<typeof certify>[0], 'name'>) =>
    certify({ name: 'Issuer, C=GB', key, ...DOCUMENT_SIGNER, ...options });
  const by = (own: readonly string[], nature: Mutation['nature']) => [{ issuer: { key, chain: own } }, nature] as const;
  const middle = await certify({ name: 'Middle, C=GB', by: authority, ca: true });
  return {
    'another certificate of the same key': by([(await of({ by: authority })).certificate], 'same'),
    'a certificate in between': by([(await of({ by: middle })).certificate, middle.certificate], 'same'),
    'a certificate in between that is missing': by([(await of({ by: middle })).certificate], 'bad'),
    'a certificate twice': by([...chain, ...chain], 'bad'),
    'the anchor behind': by([...chain, authority.certificate], 'same'),
    'a certificate that signed itself': by([(await of({})).certificate], 'bad'),
    'a certificate that has expired': by([(await of({ by: authority, until: '2026-12-01T00:00:00Z' })).certificate], 'bad'),
    'a CA as issuer': by([(await of({ by: authority, ca: true })).certificate], 'bad'),
    'a certificate of another key': by([(await certify({ name: 'Issuer, C=GB', by: authority, ...DOCUMENT_SIGNER })).certificate], 'bad'),
    'a certificate of another authority of the name': by(
      [(await of({ by: await certify({ name: authority.name, ca: true }) })).certificate],
      'bad',
    ),
    'no certificate': [{ issuerHeader: (_, header) => header.delete(33) }, 'bad'],
  };
}

/** What issuers and devices sign, and what strangers sign in their place. */
export async function signedMdocMutations(name: string, base: MdocBase, authority: CertifiedKey): Promise<readonly Mutation[]> {
  const make = (kind: string, cases: Readonly<Record<string, readonly [MdocOverrides, Mutation['nature']]>>): Mutation[] =>
    Object.entries(cases).map(([description, [bend, nature]]) => ({
      base: name,
      kind,
      description,
      text: presentMdoc(base, bend),
      nature,
    }));
  const security = (await reissued(base)).map(
    ([kind, description, bend, nature]): Mutation => ({ base: name, kind, description, text: presentMdoc(base, bend), nature }),
  );
  return [
    ...make('items changed', itemsOf()),
    ...make('the device changed', devices(base)),
    ...make('certificates changed', await certificates(base, authority)),
    ...security,
  ];
}
