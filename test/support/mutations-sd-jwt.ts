import { createHmac, createPublicKey } from 'node:crypto';
import { flipBits, type Mutation, REPLACEMENT_VALUES, spreadPositions } from './mutations.ts';
import { type HolderKey, newKey } from './raw-wallet.ts';
import {
  changePart,
  digestOf,
  disclosureOf,
  type JsonProperties,
  jws,
  presentSdJwt,
  type SdJwtBase,
  type SdJwtOverrides,
  saltedDisclosure,
  signJws,
} from './sd-jwt-maker.ts';
import { type CertifiedKey, certify } from './test-certificates.ts';

/** A valid presentation and its holder key. */
export type MutationSubject = { readonly name: string; readonly text: string; readonly holder: HolderKey };

type Change = (text: string) => string;
type Raw = Omit<Mutation, 'base'>;

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const read = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString());
const badMutation = (kind: string, description: string, text: string): Raw => ({ kind, description, text, nature: 'bad' });

/** Each base64url part, with the number of its mutations. */
function textRegions(text: string): readonly (readonly [string, number, (change: Change) => string])[] {
  const last = text.split('~').length - 1;
  const inTextPart = (at: number, dot: number) => (change: Change) => changePart('~', at, changePart('.', dot, change))(text);
  const disclosures = Array.from(
    { length: last - 1 },
    (_, index) => [`disclosure ${index}`, 20, (change: Change) => changePart('~', index + 1, change)(text)] as const,
  );
  return [
    ['issuer header', 20, inTextPart(0, 0)],
    ['issuer payload', 35, inTextPart(0, 1)],
    ['issuer signature', 20, inTextPart(0, 2)],
    ...disclosures,
    ['binding header', 12, inTextPart(last, 0)],
    ['binding payload', 30, inTextPart(last, 1)],
    ['binding signature', 20, inTextPart(last, 2)],
  ];
}

/** Changes of bytes, characters and encodings in every part of the text. */
export function corruptText({ text }: MutationSubject, random: () => number): readonly Raw[] {
  return [
    ...textRegions(text).flatMap(([region, count, changeRegion]) => {
      let partText = '';
      changeRegion((found) => {
        partText = found;
        return found;
      });
      const bytes = Buffer.from(partText, 'base64url');
      return [
        ...flipBits(bytes, count, random).map((one) =>
          badMutation(
            'a bit flipped',
            `${region}, ${one.description}`,
            changeRegion(() => one.bytes.toString('base64url')),
          ),
        ),
        ...spreadPositions(partText.length, Math.ceil(count / 3), random).flatMap((at) => [
          badMutation(
            'a character replaced',
            `${region} at ${at}`,
            changeRegion(() => replaceCharacter(partText, at, random)),
          ),
          badMutation(
            'a character left out',
            `${region} at ${at}`,
            changeRegion(() => partText.slice(0, at) + partText.slice(at + 1)),
          ),
          badMutation(
            'a character put in',
            `${region} at ${at}`,
            changeRegion(() => `${partText.slice(0, at)}A${partText.slice(at)}`),
          ),
        ]),
        ...SPELLINGS.flatMap(([description, change]) => {
          const respelledText = changeRegion(change);
          return respelledText === text ? [] : [badMutation('another spelling of base64url', `${region}: ${description}`, respelledText)];
        }),
      ];
    }),
    ...spreadPositions(text.length, 40, random).map((at) => badMutation('truncated', `at ${at}`, text.slice(0, at))),
    ...['~', '~~', '.', '.A', 'A', '=', ' ', '\n', '\0', '~A'].flatMap((suffix) => [
      badMutation('extended', `by ${JSON.stringify(suffix)}`, text + suffix),
      badMutation('extended', `by ${JSON.stringify(suffix)} in front`, suffix + text),
    ]),
    ...separatorsOf(text).flatMap((at) =>
      ['', '~~', '..', ' ', text[at] === '~' ? '.' : '~'].map((replacement) =>
        badMutation('a separator replaced', `at ${at} by "${replacement}"`, text.slice(0, at) + replacement + text.slice(at + 1)),
      ),
    ),
  ];
}

const SPELLINGS: readonly (readonly [string, Change])[] = [
  ['padded', (partText) => `${partText}${'='.repeat((4 - (partText.length % 4)) % 4)}`],
  ['one sign of padding', (partText) => `${partText}=`],
  ['the other alphabet', (partText) => partText.replaceAll('-', '+').replaceAll('_', '/')],
  ['a line break', (partText) => `${partText.slice(0, 8)}\n${partText.slice(8)}`],
  ['a space', (partText) => `${partText} `],
  [
    'other bits at the end',
    (partText) => (partText.length % 4 === 0 ? partText : partText.slice(0, -1) + nextCharacter(partText.at(-1) ?? '')),
  ],
  ['empty', () => ''],
  ['whitespace in the JSON', (partText) => Buffer.concat([Buffer.from(partText, 'base64url'), Buffer.of(32)]).toString('base64url')],
  ['a byte order mark', (partText) => Buffer.concat([Buffer.from('\ufeff'), Buffer.from(partText, 'base64url')]).toString('base64url')],
];
const nextCharacter = (character: string) => ALPHABET[ALPHABET.indexOf(character) ^ 1] ?? '';

function replaceCharacter(partText: string, at: number, random: () => number): string {
  const shift = 1 + Math.floor(random() * (ALPHABET.length - 1));
  const replacement = ALPHABET[(ALPHABET.indexOf(partText[at] ?? '') + shift) % ALPHABET.length];
  return partText.slice(0, at) + replacement + partText.slice(at + 1);
}

const separatorsOf = (text: string) => [...text.matchAll(/[~.]/g)].map(({ index }) => index);

/** Adds a key binding to an SD-JWT, by the holder's key or another one. */
function bindDisclosures(sdJwt: string, binding: { header: JsonProperties; payload: JsonProperties }, key: HolderKey): string {
  const payload = { ...binding.payload, sd_hash: digestOf(sdJwt) };
  return sdJwt + jws(binding.header, payload, key);
}

function splitPresentation({ text }: MutationSubject) {
  const parts = text.split('~');
  const binding = parts.at(-1) ?? '';
  const [header = '', payload = ''] = binding.split('.');
  return {
    jwt: parts[0] ?? '',
    disclosures: parts.slice(1, -1),
    sdJwt: `${parts.slice(0, -1).join('~')}~`,
    binding: { header: read(header) as JsonProperties, payload: read(payload) as JsonProperties },
    bindingText: binding,
  };
}

/** Digests in a disclosed value, which are invalid without their parent. */
const isParent = (disclosure: string) => JSON.stringify(read(disclosure).at(-1)).includes('"_sd"');

/** Missing, repeated, foreign, moved or rewritten disclosures, with the original key binding and with a new one. */
export function rearrangeDisclosures(subject: MutationSubject): readonly Raw[] {
  const { jwt, disclosures, binding, bindingText } = splitPresentation(subject);
  const withAndWithoutRebinding = (
    kind: string,
    description: string,
    partText: readonly string[],
    nature: Mutation['nature'] = 'bad',
  ): Raw[] => {
    const sdJwt = [jwt, ...partText, ''].join('~');
    return [
      badMutation(kind, description, sdJwt + bindingText),
      { kind: `${kind}, bound anew`, description, text: bindDisclosures(sdJwt, binding, subject.holder), nature },
      badMutation(`${kind}, bound by another`, description, bindDisclosures(sdJwt, binding, newKey())),
    ];
  };
  const foreign = [
    saltedDisclosure('admin', true),
    saltedDisclosure('family_name', 'Else'),
    saltedDisclosure('x'),
    disclosureOf('s', 'vct', 'urn:x'),
  ];
  return [
    ...disclosures.flatMap((partText, at) => [
      ...withAndWithoutRebinding('a disclosure left out', `${at}`, disclosures.toSpliced(at, 1), isParent(partText) ? 'bad' : 'same'),
      ...withAndWithoutRebinding('a disclosure twice', `${at}`, disclosures.toSpliced(at, 0, partText)),
      ...withAndWithoutRebinding(
        'a disclosure rewritten',
        `${at} with spaces`,
        disclosures.with(at, rewriteDisclosure(partText, spacedParts)),
      ),
      ...withAndWithoutRebinding(
        'a disclosure rewritten',
        `${at} with another value`,
        disclosures.with(at, rewriteDisclosure(partText, withOtherValue)),
      ),
      ...withAndWithoutRebinding(
        'a disclosure rewritten',
        `${at} with another salt`,
        disclosures.with(at, rewriteDisclosure(partText, withOtherSalt)),
      ),
      ...withAndWithoutRebinding(
        'a disclosure rewritten',
        `${at} with one part more`,
        disclosures.with(at, rewriteDisclosure(partText, withExtraPart)),
      ),
      ...disclosures
        .slice(at + 1)
        .flatMap((replacement, insertIndex) =>
          withAndWithoutRebinding(
            'disclosures in another order',
            `${at} and ${at + 1 + insertIndex}`,
            disclosures.with(at, replacement).with(at + 1 + insertIndex, partText),
            'same',
          ),
        ),
    ]),
    ...foreign.flatMap((one, index) =>
      [0, disclosures.length].flatMap((at) =>
        withAndWithoutRebinding('a foreign disclosure', `${index} at ${at}`, disclosures.toSpliced(at, 0, one)),
      ),
    ),
  ];
}

const rewriteDisclosure = (text: string, change: (parts: unknown[]) => string) => Buffer.from(change(read(text))).toString('base64url');
const spacedParts = (parts: unknown[]) => JSON.stringify(parts, null, 1);
const withOtherValue = (parts: unknown[]) => JSON.stringify(parts.with(-1, 'changed'));
const withOtherSalt = (parts: unknown[]) => JSON.stringify(parts.with(0, 'salt'));
const withExtraPart = (parts: unknown[]) => JSON.stringify([...parts, 'more']);

/** Properties that a key binding must keep; others are ignored. */
const BINDING_CLAIMS = new Set(['iat', 'aud', 'nonce', 'sd_hash', 'typ', 'alg', 'transaction_data_hashes']);

/** Changes of every property of the key binding, signed by the holder and by an attacker. */
export function changeKeyBinding(subject: MutationSubject): readonly Raw[] {
  const { sdJwt, binding } = splitPresentation(subject);
  const attackerKey = newKey();
  const withAndWithoutRebinding = (
    kind: string,
    description: string,
    header: JsonProperties,
    payload: JsonProperties,
    nature: Mutation['nature'],
  ): Raw[] => [
    { kind, description, text: sdJwt + jws(header, payload, subject.holder), nature },
    badMutation(`${kind}, by another`, description, sdJwt + jws(header, payload, attackerKey)),
    badMutation(`${kind}, by another with a key`, description, sdJwt + jws({ ...header, jwk: attackerKey.jwk }, payload, attackerKey)),
  ];
  const { header, payload } = binding;
  return [
    ...withAndWithoutRebinding('the same binding', 'signed again', header, payload, 'same'),
    ...withAndWithoutRebinding('the same binding', 'and an additional element', { ...header, kid: 'x' }, { ...payload, more: 1 }, 'same'),
    ...Object.keys(payload).flatMap((name) =>
      REPLACEMENT_VALUES.flatMap(([description, value]) =>
        withAndWithoutRebinding(`${name} of the binding`, description, header, { ...payload, [name]: value }, natureOfClaim(name)),
      ),
    ),
    ...Object.keys(header).flatMap((name) =>
      REPLACEMENT_VALUES.flatMap(([description, value]) =>
        withAndWithoutRebinding(`${name} of the binding`, description, { ...header, [name]: value }, payload, natureOfClaim(name)),
      ),
    ),
    ...otherAudiences(payload['aud']).flatMap(([description, aud]) =>
      withAndWithoutRebinding('aud of the binding', description, header, { ...payload, aud }, 'bad'),
    ),
    ...[-31_536_000, -3_600, 3_600, 31_536_000].flatMap((shift) =>
      withAndWithoutRebinding('iat of the binding', `moved by ${shift}`, header, { ...payload, iat: payload['iat'] + shift }, 'bad'),
    ),
    ...['exp', 'nbf'].flatMap((name) =>
      REPLACEMENT_VALUES.slice(1).flatMap(([description, value]) => [
        ...withAndWithoutRebinding(`${name} of the binding`, description, header, { ...payload, [name]: value }, 'issuer'),
      ]),
    ),
    ...Object.keys(payload).map((name) => {
      const duplicatedText = JSON.stringify(payload).replace('{', `{"${name}":${JSON.stringify(payload[name])},`);
      const input = `${encode(header)}.${Buffer.from(duplicatedText).toString('base64url')}`;
      return badMutation('a member of the binding twice', name, sdJwt + signJws(input, subject.holder));
    }),
  ];
}

const natureOfClaim = (name: string) => (BINDING_CLAIMS.has(name) ? 'bad' : 'issuer');
const otherAudiences = (aud: string): readonly (readonly [string, unknown])[] => [
  ['a list of the right one', [aud]],
  ['the right one among others', [aud, 'x']],
  ['without its prefix', aud.slice(aud.indexOf(':') + 1)],
  ['an origin', `origin:${aud}`],
  ['in capitals', aud.toUpperCase()],
  ['with a space', `${aud} `],
];

const ALGORITHMS = ['none', 'None', '', 'HS256', 'RS256', 'PS256', 'ES384', 'ES512', 'ES256K', 'EdDSA', 'es256'];

/** Wrong algorithm names and invalid signatures. */
export function breakSignatures(subject: MutationSubject): readonly Raw[] {
  const { jwt, sdJwt, bindingText } = splitPresentation(subject);
  const rest = subject.text.slice(jwt.length);
  const secret = createPublicKey({ key: subject.holder.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const withAlgorithm = (token: string, alg: string) => changePart('.', 0, (header) => encode({ ...read(header), alg }))(token);
  const signatures: readonly (readonly [string, Change])[] = [
    ['the signature kept', (token) => token],
    ['no signature', changePart('.', 2, () => '')],
    ['a MAC by a public key', (token) => hmac(token, secret as string)],
    ['a signature of zeros', changePart('.', 2, () => Buffer.alloc(64).toString('base64url'))],
    ['a signature twice as long', changePart('.', 2, (one) => one + one)],
  ];
  return ALGORITHMS.concat('ES256').flatMap((alg) =>
    signatures.flatMap(([description, sign]) => {
      const issuerPart = sign(withAlgorithm(jwt, alg)) + rest;
      const binding = sdJwt + sign(withAlgorithm(bindingText, alg));
      const texts: [string, string][] = [
        ['of the issuer', issuerPart],
        ['of the binding', binding],
      ];
      return texts
        .filter(([, text]) => text !== subject.text)
        .map(([signatureKind, text]) => badMutation('an algorithm announced', `"${alg}" ${signatureKind}, ${description}`, text));
    }),
  );
}

function hmac(token: string, secret: string): string {
  const input = token.slice(0, token.lastIndexOf('.'));
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

/** All mutations of a presentation without the issuer's key. */
export function holderMutations(subject: MutationSubject, random: () => number): readonly Mutation[] {
  const parts = [
    ...corruptText(subject, random),
    ...rearrangeDisclosures(subject),
    ...changeKeyBinding(subject),
    ...breakSignatures(subject),
  ];
  return parts.map((one) => ({ base: subject.name, ...one }));
}

/** The trusted issuer and the requested credential type. */
export type IssuerSetup = {
  readonly authority: CertifiedKey;
  readonly base: Omit<SdJwtBase, 'visible' | 'hidden'>;
  readonly vct: string;
  readonly statusUri: string;
};
type SigningOptions = Pick<SdJwtOverrides, 'issuer' | 'issuerKey' | 'header'>;

/**
 * Returns a function that makes presentations with selectively disclosable claims, nested claims and array elements, and
 * decoys.
 */
export function credentialMaker({ base, vct, statusUri }: IssuerSetup) {
  const title = saltedDisclosure('title', 'Countess');
  const street = saltedDisclosure('street_address', 'Baker Street 1');
  const employer = saltedDisclosure('employer', { company: 'Analytical Engines', _sd: [digestOf(title)] });
  const [first, second] = [saltedDisclosure('GB'), saltedDisclosure('FR')];
  const visible: JsonProperties = {
    vct,
    iss: 'https://issuer.example',
    nbf: base.now - 1000,
    exp: base.now + 86_400,
    status: { status_list: { idx: 1, uri: statusUri } },
    address: { country: 'GB', _sd: [digestOf(street), digestOf('decoy of the address')] },
    nationalities: [{ '...': digestOf(first) }, 'DE', { '...': digestOf(second) }, { '...': digestOf('decoy') }],
  };
  const fullBase: SdJwtBase = { ...base, visible, hidden: { family_name: 'Lovelace', age: 36 } };
  /** @param payload changes the issuer's payload; @param shown changes the disclosures. */
  return (
    overrides: Omit<SdJwtOverrides, 'payload' | 'show'> = {},
    payload: (payload: JsonProperties) => JsonProperties = (partText) => partText,
    changeShown: (disclosures: readonly string[]) => readonly string[] = (partText) => partText,
  ): string =>
    presentSdJwt(fullBase, {
      ...overrides,
      payload: (partText) => payload({ ...partText, _sd: [...partText['_sd'], digestOf(employer)] }),
      changeDisclosures: (partText) => changeShown([...partText, street, employer, title, first]),
    });
}

/** Values that are valid unless they come from a disclosure. */
const HIDDEN_VALUES: JsonProperties = { exp: 1_900_000_000, nbf: 1, status: { status_list: { idx: 1, uri: 'x' } } };
const suffix = (text: string, into: (payload: JsonProperties, digest: string) => JsonProperties) =>
  [(payload: JsonProperties) => into(payload, digestOf(text)), (changeShown: readonly string[]) => [...changeShown, text]] as const;
const inTopLevel = (payload: JsonProperties, digest: string): JsonProperties => ({ ...payload, _sd: [...payload['_sd'], digest] });
const inArray = (payload: JsonProperties, digest: string): JsonProperties => ({
  ...payload,
  nationalities: [...payload['nationalities'], { '...': digest }],
});

type MadePresentation = ReturnType<typeof credentialMaker>;

/** Credentials that violate the format, signed by the issuer. */
function ruleBreakingCredentials(makePresentation: MadePresentation): readonly Raw[] {
  const cases: Readonly<Record<string, () => string>> = {
    'a digest twice': () => makePresentation({}, (partText) => inTopLevel(partText, partText['_sd'][0])),
    'a decoy twice': () => makePresentation({}, (partText) => inArray(inTopLevel(partText, digestOf('x')), digestOf('x'))),
    'digests that are no list': () => makePresentation({}, (partText) => ({ ...partText, _sd: 'x' })),
    'digests that are no text': () => makePresentation({}, (partText) => ({ ...partText, _sd: [...partText['_sd'], 7] })),
    'digests in an object that are no list': () => makePresentation({}, (partText) => ({ ...partText, address: { _sd: {} } })),
    'a digest with company': () => makePresentation({}, (partText) => ({ ...partText, list: [{ '...': 'x', y: 1 }] })),
    'a digest in a list that is no text': () => makePresentation({}, (partText) => ({ ...partText, list: [{ '...': 7 }] })),
    'a property with the name ...': () => makePresentation({}, (partText) => ({ ...partText, other: { '...': 'x' } })),
    'a hash inside': () => makePresentation({}, (partText) => ({ ...partText, other: { _sd_alg: 'sha-256' } })),
    'a claim as an array element': () => makePresentation({}, ...suffix(saltedDisclosure('x', 1), inArray)),
    'an array element as a claim': () => makePresentation({}, ...suffix(saltedDisclosure(1), inTopLevel)),
    'a claim that is there already': () => makePresentation({}, ...suffix(saltedDisclosure('nationalities', []), inTopLevel)),
    'a disclosure of one': () => makePresentation({}, ...suffix(disclosureOf('salt'), inTopLevel)),
    'a disclosure of four': () => makePresentation({}, ...suffix(disclosureOf('salt', 'a', 'b', 'c'), inTopLevel)),
    'a disclosure that is an object': () => makePresentation({}, ...suffix(encode({ a: 1 }), inTopLevel)),
    'a disclosure that is text': () => makePresentation({}, ...suffix(encode('text'), inTopLevel)),
    'a disclosure that is no JSON': () => makePresentation({}, ...suffix(Buffer.from('text').toString('base64url'), inTopLevel)),
    'a disclosure that is no UTF-8': () =>
      makePresentation({}, ...suffix(Buffer.from('5b2273222c2261222c22ff225d', 'hex').toString('base64url'), inTopLevel)),
    'a disclosure with a property twice': () =>
      makePresentation({}, ...suffix(Buffer.from('["s","a",{"b":1,"b":2}]').toString('base64url'), inTopLevel)),
    'a salt that is no text': () => makePresentation({}, ...suffix(disclosureOf(1, 'a', 'b'), inTopLevel)),
    'a claim name that is no text': () => makePresentation({}, ...suffix(disclosureOf('s', 1, 'b'), inTopLevel)),
    ...Object.fromEntries(
      ['_sd', '...', '_sd_alg', '__proto__'].map((name) => [
        `a claim of the name ${name}`,
        () => makePresentation({}, ...suffix(saltedDisclosure(name, ['x']), inTopLevel)),
      ]),
    ),
    ...Object.fromEntries(
      ['iss', 'nbf', 'exp', 'cnf', 'vct', 'status', 'vct#integrity'].map((name) => [
        `${name} from a disclosure`,
        () => {
          const text = saltedDisclosure(name, HIDDEN_VALUES[name] ?? 'x');
          const [payload, changeShown] = suffix(text, inTopLevel);
          return makePresentation({}, ({ [name]: _, ...partText }) => payload(partText), changeShown);
        },
      ]),
    ),
    ...Object.fromEntries(
      ['SHA-256', 'sha-1', 'md5', 'sha-256-64', '', 'sha-512'].map((name) => [
        `the hash ${name}`,
        () => makePresentation({}, (partText) => ({ ...partText, _sd_alg: name })),
      ]),
    ),
    '40 levels of disclosures': () => {
      const texts = [saltedDisclosure('leaf', 1)];
      while (texts.length < 40) texts.push(saltedDisclosure('level', { _sd: [digestOf(texts.at(-1) ?? '')] }));
      return makePresentation(
        {},
        (partText) => inTopLevel(partText, digestOf(texts.at(-1) ?? '')),
        (partText) => [...partText, ...texts],
      );
    },
  };
  return Object.entries(cases).map(([description, makeText]) => ({
    kind: 'a credential that breaks a rule',
    description,
    text: makeText(),
    nature: 'bad',
  }));
}

/** Changes of every property of the credential, signed by the issuer and by three kinds of attackers. */
async function reissueMutations(makePresentation: MadePresentation, { base, authority }: IssuerSetup): Promise<readonly Raw[]> {
  const attackerKey = await certify({ name: 'Stranger' });
  const { chain } = base.issuer;
  const signers: readonly (readonly [string, SigningOptions, Mutation['nature']])[] = [
    ['by the issuer', {}, 'issuer'],
    ['by another key', { issuerKey: attackerKey }, 'bad'],
    ['by an attacker', { issuer: { key: attackerKey, chain: [attackerKey.certificate] } }, 'bad'],
    ['by another key in the header', { issuerKey: attackerKey, header: { jwk: attackerKey.jwk } }, 'bad'],
    [
      "by an attacker, with the attacker's certificate first",
      { issuer: { key: attackerKey, chain: [attackerKey.certificate, ...chain] } },
      'bad',
    ],
    [
      "by an attacker, with the attacker's certificate last",
      { issuer: { key: attackerKey, chain: [...chain, attackerKey.certificate] } },
      'bad',
    ],
  ];
  const propertyNames = ['vct', 'iss', 'iat', 'nbf', 'exp', 'cnf', 'status', 'address', 'nationalities', '_sd', '_sd_alg'];
  const payloads = propertyNames.flatMap((name) =>
    REPLACEMENT_VALUES.flatMap(([description, value]) =>
      signers.map(
        ([signerDescription, signing, nature]): Raw => ({
          kind: `the credential changed ${signerDescription}`,
          description: `${name}: ${description}`,
          text: makePresentation(signing, (partText) => ({ ...partText, [name]: value })),
          nature,
        }),
      ),
    ),
  );
  const headers = ['alg', 'typ', 'x5c', 'crit', 'b64', 'kid', 'jwk'].flatMap((name) =>
    REPLACEMENT_VALUES.map(
      ([description, value]): Raw => ({
        kind: 'the header changed by the issuer',
        description: `${name}: ${description}`,
        text: makePresentation({ header: { [name]: value } }),
        nature: name === 'kid' || name === 'jwk' ? 'issuer' : 'bad',
      }),
    ),
  );
  // `b64: true` and an absent `crit` equal their defaults.
  const neutral = new Set(['crit: left out', 'b64: left out', 'b64: true']);
  return [
    ...payloads,
    ...headers.map((one) => (neutral.has(one.description) ? { ...one, nature: 'same' as const } : one)),
    ...(await certificateMutations(makePresentation, authority, base.issuer.key, chain)),
  ];
}

async function certificateMutations(
  makePresentation: MadePresentation,
  ca: CertifiedKey,
  key: HolderKey,
  chain: readonly string[],
): Promise<readonly Raw[]> {
  const certifyAs = (options: Omit<Parameters<typeof certify>[0], 'name'>) => certify({ name: 'Issuer', key, ...options });
  const middle = await certify({ name: 'Middle', by: ca, ca: true });
  const leaf = await certifyAs({ by: ca });
  const chains: Readonly<Record<string, readonly [readonly string[], Mutation['nature']]>> = {
    'another certificate of the same key': [[leaf.certificate], 'same'],
    'a certificate in between': [[(await certifyAs({ by: middle })).certificate, middle.certificate], 'same'],
    'a certificate in between that is missing': [[(await certifyAs({ by: middle })).certificate], 'bad'],
    'a certificate in between in front': [[middle.certificate, (await certifyAs({ by: middle })).certificate], 'bad'],
    'a certificate in between that is no CA': [[(await certifyAs({ by: leaf })).certificate, leaf.certificate], 'bad'],
    'a certificate twice': [[...chain, ...chain], 'bad'],
    'the anchor behind': [[...chain, ca.certificate], 'same'],
    'the anchor alone': [[ca.certificate], 'bad'],
    'a certificate that signed itself': [[(await certifyAs({})).certificate], 'bad'],
    'a certificate that has expired': [[(await certifyAs({ by: ca, until: '2026-01-01T00:00:00Z' })).certificate], 'bad'],
    'a certificate that is not valid yet': [[(await certifyAs({ by: ca, from: '2040-01-01T00:00:00Z' })).certificate], 'bad'],
    'a CA as issuer': [[(await certifyAs({ by: ca, ca: true })).certificate], 'bad'],
    'a certificate of another key': [[(await certify({ name: 'Issuer', by: ca })).certificate], 'bad'],
    'a certificate of another CA with the same name': [
      [(await certifyAs({ by: await certify({ name: ca.name, ca: true }) })).certificate],
      'bad',
    ],
    'a certificate with a byte more': [[Buffer.concat([decoded(chain), Buffer.of(0)]).toString('base64')], 'bad'],
    'half a certificate': [[decoded(chain).subarray(0, 200).toString('base64')], 'bad'],
    'a certificate in base64url': [chain.map((one) => Buffer.from(one, 'base64').toString('base64url')), 'bad'],
    'a certificate in PEM': [chain.map((one) => `-----BEGIN CERTIFICATE-----\n${one}`), 'bad'],
    'seven certificates': [Array.from({ length: 7 }, () => chain[0] ?? ''), 'bad'],
  };
  return Object.entries(chains).map(([description, [partText, nature]]) => ({
    kind: 'certificates changed',
    description,
    text: makePresentation({ issuer: { key, chain: partText } }),
    nature,
  }));
}

const decoded = ([first = '']: readonly string[]) => Buffer.from(first, 'base64');

/** Mutations that issuers sign, and forgeries by attackers. */
export async function issuerMutations(name: string, ecosystem: IssuerSetup): Promise<readonly Mutation[]> {
  const makePresentation = credentialMaker(ecosystem);
  const otherHolderKey = newKey();
  const parts: Raw[] = [
    ...ruleBreakingCredentials(makePresentation),
    ...(await reissueMutations(makePresentation, ecosystem)),
    { kind: 'another holder', description: '', text: makePresentation({ kbKey: otherHolderKey }), nature: 'bad' },
  ];
  return parts.map((one) => ({ base: name, ...one }));
}
