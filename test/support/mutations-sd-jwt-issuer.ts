import { type Mutation, OTHER_VALUES } from './mutations.ts';
import { type HolderKey, newKey } from './raw-wallet.ts';
import {
  digestOf,
  disclosureOf,
  type Members,
  presentSdJwt,
  type SdJwtBase,
  type SdJwtBend,
  salted,
} from './sd-jwt-maker.ts';
import { type Certified, certify } from './test-certificates.ts';

/** Who may issue, and what is asked for. */
export type Ecosystem = {
  readonly authority: Certified;
  readonly base: Omit<SdJwtBase, 'visible' | 'hidden'>;
  readonly vct: string;
  readonly statusUri: string;
};

type Raw = Omit<Mutation, 'base'>;
type Signing = Pick<SdJwtBend, 'issuer' | 'issuerKey' | 'header'>;

/** A credential with claims, parts of claims and members of lists that are disclosed one by one, and decoys. */
export function issuedBy({ base, vct, statusUri }: Ecosystem) {
  const title = salted('title', 'Countess');
  const street = salted('street_address', 'Baker Street 1');
  const employer = salted('employer', { company: 'Analytical Engines', _sd: [digestOf(title)] });
  const [first, second] = [salted('GB'), salted('FR')];
  const visible: Members = {
    vct,
    iss: 'https://issuer.example',
    nbf: base.now - 1000,
    exp: base.now + 86_400,
    status: { status_list: { idx: 1, uri: statusUri } },
    address: { country: 'GB', _sd: [digestOf(street), digestOf('decoy of the address')] },
    nationalities: [
      { '...': digestOf(first) },
      'DE',
      { '...': digestOf(second) },
      { '...': digestOf('decoy') },
    ],
  };
  const whole: SdJwtBase = { ...base, visible, hidden: { family_name: 'Lovelace', age: 36 } };
  /** @param payload changes what the issuer signs; @param shown changes what the holder shows. */
  return (
    bend: Omit<SdJwtBend, 'payload' | 'show'> = {},
    payload: (payload: Members) => Members = (own) => own,
    shown: (disclosures: readonly string[]) => readonly string[] = (own) => own,
  ): string =>
    presentSdJwt(whole, {
      ...bend,
      payload: (own) => payload({ ...own, _sd: [...own['_sd'], digestOf(employer)] }),
      show: (own) => shown([...own, street, employer, title, first]),
    });
}

/** Values that are right where they do not come from a disclosure. */
const HIDDEN: Members = { exp: 1_900_000_000, nbf: 1, status: { status_list: { idx: 1, uri: 'x' } } };

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const more = (text: string, into: (payload: Members, digest: string) => Members) =>
  [
    (payload: Members) => into(payload, digestOf(text)),
    (shown: readonly string[]) => [...shown, text],
  ] as const;
const inTop = (payload: Members, digest: string): Members => ({
  ...payload,
  _sd: [...payload['_sd'], digest],
});
const inList = (payload: Members, digest: string): Members => ({
  ...payload,
  nationalities: [...payload['nationalities'], { '...': digest }],
});

type Made = ReturnType<typeof issuedBy>;

/** Credentials that break the rules of the format, signed by the issuer all the same. */
function unruly(made: Made): readonly Raw[] {
  const cases: Readonly<Record<string, () => string>> = {
    'a digest twice': () => made({}, (own) => inTop(own, own['_sd'][0])),
    'a decoy twice': () => made({}, (own) => inList(inTop(own, digestOf('x')), digestOf('x'))),
    'digests that are no list': () => made({}, (own) => ({ ...own, _sd: 'x' })),
    'digests that are no text': () => made({}, (own) => ({ ...own, _sd: [...own['_sd'], 7] })),
    'digests in an object that are no list': () => made({}, (own) => ({ ...own, address: { _sd: {} } })),
    'a digest with company': () => made({}, (own) => ({ ...own, list: [{ '...': 'x', y: 1 }] })),
    'a digest in a list that is no text': () => made({}, (own) => ({ ...own, list: [{ '...': 7 }] })),
    'a member of the name ...': () => made({}, (own) => ({ ...own, other: { '...': 'x' } })),
    'a hash inside': () => made({}, (own) => ({ ...own, other: { _sd_alg: 'sha-256' } })),
    'a claim as member of a list': () => made({}, ...more(salted('x', 1), inList)),
    'a member of a list as claim': () => made({}, ...more(salted(1), inTop)),
    'a claim that is there already': () => made({}, ...more(salted('nationalities', []), inTop)),
    'a disclosure of one': () => made({}, ...more(disclosureOf('salt'), inTop)),
    'a disclosure of four': () => made({}, ...more(disclosureOf('salt', 'a', 'b', 'c'), inTop)),
    'a disclosure that is an object': () => made({}, ...more(encode({ a: 1 }), inTop)),
    'a disclosure that is text': () => made({}, ...more(encode('text'), inTop)),
    'a disclosure that is no JSON': () => made({}, ...more(Buffer.from('text').toString('base64url'), inTop)),
    'a disclosure that is no UTF-8': () =>
      made({}, ...more(Buffer.from('5b2273222c2261222c22ff225d', 'hex').toString('base64url'), inTop)),
    'a disclosure with a member twice': () =>
      made({}, ...more(Buffer.from('["s","a",{"b":1,"b":2}]').toString('base64url'), inTop)),
    'a salt that is no text': () => made({}, ...more(disclosureOf(1, 'a', 'b'), inTop)),
    'a claim name that is no text': () => made({}, ...more(disclosureOf('s', 1, 'b'), inTop)),
    ...Object.fromEntries(
      ['_sd', '...', '_sd_alg', '__proto__'].map((name) => [
        `a claim of the name ${name}`,
        () => made({}, ...more(salted(name, ['x']), inTop)),
      ]),
    ),
    ...Object.fromEntries(
      ['iss', 'nbf', 'exp', 'cnf', 'vct', 'status', 'vct#integrity'].map((name) => [
        `${name} from a disclosure`,
        () => {
          const text = salted(name, HIDDEN[name] ?? 'x');
          const [payload, shown] = more(text, inTop);
          return made({}, ({ [name]: _, ...own }) => payload(own), shown);
        },
      ]),
    ),
    ...Object.fromEntries(
      ['SHA-256', 'sha-1', 'md5', 'sha-256-64', '', 'sha-512'].map((name) => [
        `the hash ${name}`,
        () => made({}, (own) => ({ ...own, _sd_alg: name })),
      ]),
    ),
    '40 levels of disclosures': () => {
      const texts = [salted('leaf', 1)];
      while (texts.length < 40) texts.push(salted('level', { _sd: [digestOf(texts.at(-1) ?? '')] }));
      return made(
        {},
        (own) => inTop(own, digestOf(texts.at(-1) ?? '')),
        (own) => [...own, ...texts],
      );
    },
  };
  return Object.entries(cases).map(([what, make]) => ({
    kind: 'a credential that breaks a rule',
    what,
    text: make(),
    nature: 'bad',
  }));
}

/** Every member of the credential changed, signed by its issuer and by three kinds of strangers. */
async function reissued(made: Made, { base, authority }: Ecosystem): Promise<readonly Raw[]> {
  const stranger = await certify({ name: 'Stranger' });
  const { chain } = base.issuer;
  const signers: readonly (readonly [string, Signing, Mutation['nature']])[] = [
    ['by the issuer', {}, 'issuer'],
    ['by another key', { issuerKey: stranger }, 'bad'],
    ['by a stranger', { issuer: { key: stranger, chain: [stranger.certificate] } }, 'bad'],
    ['by another key in the header', { issuerKey: stranger, header: { jwk: stranger.jwk } }, 'bad'],
    ['by a stranger in front', { issuer: { key: stranger, chain: [stranger.certificate, ...chain] } }, 'bad'],
    ['by a stranger behind', { issuer: { key: stranger, chain: [...chain, stranger.certificate] } }, 'bad'],
  ];
  const members = [
    'vct',
    'iss',
    'iat',
    'nbf',
    'exp',
    'cnf',
    'status',
    'address',
    'nationalities',
    '_sd',
    '_sd_alg',
  ];
  const payloads = members.flatMap((name) =>
    OTHER_VALUES.flatMap(([what, value]) =>
      signers.map(
        ([who, signing, nature]): Raw => ({
          kind: `the credential changed ${who}`,
          what: `${name}: ${what}`,
          text: made(signing, (own) => ({ ...own, [name]: value })),
          nature,
        }),
      ),
    ),
  );
  const headers = ['alg', 'typ', 'x5c', 'crit', 'b64', 'kid', 'jwk'].flatMap((name) =>
    OTHER_VALUES.map(
      ([what, value]): Raw => ({
        kind: 'the header changed by the issuer',
        what: `${name}: ${what}`,
        text: made({ header: { [name]: value } }),
        nature: name === 'kid' || name === 'jwk' ? 'issuer' : 'bad',
      }),
    ),
  );
  // An unencoded payload that is said to be encoded, and an extension that is absent, are as good as none.
  const neutral = new Set(['crit: left out', 'b64: left out', 'b64: true']);
  return [
    ...payloads,
    ...headers.map((one) => (neutral.has(one.what) ? { ...one, nature: 'same' as const } : one)),
    ...(await certificates(made, authority, base.issuer.key, chain)),
  ];
}

async function certificates(
  made: Made,
  authority: Certified,
  key: HolderKey,
  chain: readonly string[],
): Promise<readonly Raw[]> {
  const of = (options: Omit<Parameters<typeof certify>[0], 'name'>) =>
    certify({ name: 'Issuer', key, ...options });
  const middle = await certify({ name: 'Middle', by: authority, ca: true });
  const leaf = await of({ by: authority });
  const chains: Readonly<Record<string, readonly [readonly string[], Mutation['nature']]>> = {
    'another certificate of the same key': [[leaf.certificate], 'same'],
    'a certificate in between': [[(await of({ by: middle })).certificate, middle.certificate], 'same'],
    'a certificate in between that is missing': [[(await of({ by: middle })).certificate], 'bad'],
    'a certificate in between in front': [
      [middle.certificate, (await of({ by: middle })).certificate],
      'bad',
    ],
    'a certificate in between that is no CA': [
      [(await of({ by: leaf })).certificate, leaf.certificate],
      'bad',
    ],
    'a certificate twice': [[...chain, ...chain], 'bad'],
    'the anchor behind': [[...chain, authority.certificate], 'same'],
    'the anchor alone': [[authority.certificate], 'bad'],
    'a certificate that signed itself': [[(await of({})).certificate], 'bad'],
    'a certificate that has expired': [
      [(await of({ by: authority, until: '2026-01-01T00:00:00Z' })).certificate],
      'bad',
    ],
    'a certificate that is not valid yet': [
      [(await of({ by: authority, from: '2040-01-01T00:00:00Z' })).certificate],
      'bad',
    ],
    'a CA as issuer': [[(await of({ by: authority, ca: true })).certificate], 'bad'],
    'a certificate of another key': [[(await certify({ name: 'Issuer', by: authority })).certificate], 'bad'],
    'a certificate of another authority of the name': [
      [(await of({ by: await certify({ name: authority.name, ca: true }) })).certificate],
      'bad',
    ],
    'a certificate with a byte more': [
      [Buffer.concat([decoded(chain), Buffer.of(0)]).toString('base64')],
      'bad',
    ],
    'half a certificate': [[decoded(chain).subarray(0, 200).toString('base64')], 'bad'],
    'a certificate in base64url': [
      chain.map((one) => Buffer.from(one, 'base64').toString('base64url')),
      'bad',
    ],
    'a certificate in PEM': [chain.map((one) => `-----BEGIN CERTIFICATE-----\n${one}`), 'bad'],
    'seven certificates': [Array.from({ length: 7 }, () => chain[0] ?? ''), 'bad'],
  };
  return Object.entries(chains).map(([what, [own, nature]]) => ({
    kind: 'certificates changed',
    what,
    text: made({ issuer: { key, chain: own } }),
    nature,
  }));
}

const decoded = ([first = '']: readonly string[]) => Buffer.from(first, 'base64');

/** What issuers sign, and what strangers sign in their place. */
export async function issuerMutations(name: string, ecosystem: Ecosystem): Promise<readonly Mutation[]> {
  const made = issuedBy(ecosystem);
  const stolen = newKey();
  const all: Raw[] = [
    ...unruly(made),
    ...(await reissued(made, ecosystem)),
    { kind: 'another holder', what: '', text: made({ kbKey: stolen }), nature: 'bad' },
  ];
  return all.map((one) => ({ base: name, ...one }));
}
