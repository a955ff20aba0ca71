import { expect } from 'chai';
import { type CredentialConfiguration, CredentialConfigurationBody, proofTypesOf } from '../../../domain/issuance/configuration.ts';
import { findOtherAlgorithmProblems } from '../../../domain/issuance/declared-capabilities.ts';
import {
  defaultIssuance,
  type IssuanceConfiguration,
  IssuanceConfigurationBody,
  withDefaults,
} from '../../../domain/issuance/issuance-configuration.ts';
import { findMissingClaims } from '../../../domain/issuance/mandatory-claims.ts';
import { type IssuerMetadataParts, issuerMetadata } from '../../../domain/issuance/metadata.ts';
import { typeMetadata } from '../../../domain/issuance/type-metadata.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { TrustListData } from '../../../domain/trust-lists/scheme-information.ts';
import { aConfiguration, anMdoc, DISPLAY, findProblemPaths, MDL, MDL_NAMESPACE } from './kit.ts';

const EMPTY = { display: [], claims: [], cryptographic_binding_methods_supported: [], credential_signing_alg_values_supported: [] };
const BOUND = 'config.cryptographic_binding_methods_supported';
const SIGNED = 'config.credential_signing_alg_values_supported';
const withSupported = <T extends { config: object }>(body: T, methods: unknown[], algorithms: unknown[] = []) => ({
  ...body,
  config: { ...body.config, cryptographic_binding_methods_supported: methods, credential_signing_alg_values_supported: algorithms },
});
const MDOC = { config: { format: 'mso_mdoc', display: DISPLAY, docType: MDL } };
const mdoc = (config: object, properties: object = {}) => ({ config: { ...MDOC.config, ...config }, ...properties });
const paths = (format: object, ...all: unknown[]) => ({ config: { ...format, claims: all.map((path) => ({ path })) } });
const TEXT = { type: 'string' };
const OPEN = { type: 'object', properties: { name: TEXT } };
const CLOSED = { ...OPEN, additionalProperties: false };
const STATIC = { name: 'Ada', address: { street: 'Main Street 1' }, list: [{ a: 1 }, 'b'] };
const LIST = { type: 'object', properties: { list: { type: 'array', maxItems: 2, items: OPEN } } };

describe('credential configuration', () => {
  const SD_JWT = { config: { format: 'dc+sd-jwt', display: DISPLAY }, vct: 'urn:card:1' };
  const framed = (disclosureFrame: object, schema?: object) => ({ ...SD_JWT, disclosureFrame, schema });
  const ofClaims = (disclosureFrame: object) => ({ ...SD_JWT, disclosureFrame, claims: STATIC });
  const withClaimPaths = (...all: unknown[][]) => ({ ...paths(SD_JWT.config, ...all), vct: SD_JWT.vct });

  const valid: [string, object][] = [
    ['an SD-JWT VC', SD_JWT],
    ['an SD-JWT VC without a key', { ...SD_JWT, keyBinding: false }],
    ['an mdoc', MDOC],
    ['an mdoc with elements', mdoc({ claimsByNamespace: { [MDL_NAMESPACE]: { birth_date: '1984-01-26' } } })],
    ['an mdoc that only names a namespace', mdoc({ claimsByNamespace: { other: {} } }, { claims: { name: 'Ada' } })],
    ['an mdoc with empty properties of the other format', { ...MDOC, vct: null, disclosureFrame: null }],
    ['selected proof types', { ...SD_JWT, proofTypes: ['attestation'], keyAttestationsRequired: {} }],
    ['a frame within its schema', framed({ _sd: ['name'] }, CLOSED)],
    ['a frame beyond what an open schema names', framed({ _sd: ['more'] }, OPEN)],
    ['a frame of array elements', framed({ list: { _sd: [1], '0': { _sd: ['name'] } } }, LIST)],
    ['a frame over a union', framed({ a: { _sd: ['b'] } }, { properties: { a: { type: ['object', 'null'] } } })],
    ['a frame over a reference', framed({ a: { _sd: ['b'] } }, { properties: { a: { $ref: '#/$defs/a' } } })],
    ['a frame over names by pattern', framed({ _sd: ['x'] }, { ...CLOSED, patternProperties: { x: {} } })],
    ['a frame over static claims', { ...framed({ _sd: ['name'] }), claims: STATIC }],
    ['a frame below static claims', { ...framed({ address: { _sd: ['street'] }, list: { '0': { _sd: ['a'] } } }), claims: STATIC }],
    ['a frame over described claims', { ...withClaimPaths(['age'], ['all', null, 'a']), disclosureFrame: { _sd: ['age'] } }],
    [
      'a frame over one claim of each',
      { ...ofClaims({ _sd: ['name', 'age', 'more'] }), ...withClaimPaths(['age']), schema: { properties: { more: {} } } },
    ],
    ['a frame over a claim that its type alone describes', { ...ofClaims({ _sd: ['age'] }), vct: { claims: [{ path: ['age'] }] } }],
    [
      'a frame over described entries of an array',
      { ...withClaimPaths(['list', null, 'a']), disclosureFrame: { list: { '0': { _sd: ['a'] } } } },
    ],
    ['a frame of positions', { ...withClaimPaths(['list', 'a']), disclosureFrame: { list: { _sd: [0] } } }],
    [
      'a frame below a part of the schema in several parts',
      { ...ofClaims({ address: { _sd: ['zip'] } }), schema: { properties: { address: { allOf: [{}] } } } },
    ],
    ['a frame below what an open schema does not name', framed({ address: { _sd: ['street'] } }, OPEN)],
    [
      'a frame of numbers for properties with numeric names',
      framed({ list: { _sd: [0] } }, { properties: { list: { properties: { '0': false } } } }),
    ],
    ['claims below different properties', withClaimPaths(['a', 'x'], ['b', 0], ['list', 0, 'a'], ['list', 1, 'b'])],
    ['a claim with a numeric name', withClaimPaths(['list', '-1'])],
    ['an mdoc claim within a map', paths(MDOC.config, [MDL_NAMESPACE, 'map', -1])],
    ['a frame where static claims are still empty', { ...framed({ _sd: ['name'] }), claims: {} }],
    ['a frame that hides the issuance time', ofClaims({ _sd: ['iat'] })],
    [
      'a frame below a claim without a nested description',
      { ...withClaimPaths(['address']), disclosureFrame: { address: { _sd: ['x'] } } },
    ],
    ['a frame for claims of a webhook', { ...ofClaims({ _sd: ['other'] }), claimsWebhook: { url: 'https://b.example' } }],
    ['a frame beyond a schema of several parts', { ...ofClaims({ _sd: ['other'] }), schema: { allOf: [{}] } }],
    ['a frame for unknown claims', framed({ _sd: ['name'], address: { _sd: ['street'] } })],
    ['a credential without a display', { ...SD_JWT, config: { format: 'dc+sd-jwt' } }],
    ['a credential with empty lists', { ...SD_JWT, config: { ...SD_JWT.config, ...EMPTY }, iaeActions: [] }],
    ['a type with empty lists', { ...SD_JWT, vct: { display: [{ name: 'Card', locale: 'en', rendering: { svg_templates: [] } }], claims: [] } }], // biome-ignore format: one case
    ['an SD-JWT VC with binding methods and algorithms', withSupported(SD_JWT, ['jwk'], ['ES256'])],
    ['an SD-JWT VC with an Ed25519 key', withSupported(SD_JWT, ['jwk'], ['Ed25519'])],
    ['an mdoc with binding methods and algorithms', withSupported(MDOC, ['cose_key'], [-7])],
    ['an mdoc with the algorithm name of older drafts', withSupported(MDOC, ['cose_key'], ['ES256', -9])],
    ['type metadata that extends another type', { ...SD_JWT, vct: { extends: 'urn:x', 'extends#integrity': `sha256-${'A'.repeat(43)}=` } }], // biome-ignore format: one case
  ];
  for (const [description, body] of valid) {
    it(`may be that of ${description}`, () => expect(findProblemPaths(body)).to.deep.equal([]));
  }

  const rejectedBodies: [string, object, string][] = [
    ['an mdoc without document type', { config: { ...MDOC.config, docType: undefined } }, 'config.docType'],
    ['an mdoc without key binding', { ...MDOC, keyBinding: false }, 'keyBinding'],
    ['an mdoc with a vct', { ...MDOC, vct: 'urn:card:1' }, 'vct'],
    ['an mdoc with a frame', { ...MDOC, disclosureFrame: { _sd: ['name'] } }, 'disclosureFrame'],
    ['an mdoc with two static sources', mdoc({ claimsByNamespace: { a: { b: 1 } } }, { claims: { c: 1 } }), 'claims'],
    ['an mdoc with an invalid date', mdoc({ claimsByNamespace: { a: { birth_date: 'x' } } }), 'config.claimsByNamespace.a.birth_date'], // biome-ignore format: one case
    ['an mdoc with an invalid flat date', { ...MDOC, claims: { birth_date: 'x' } }, 'claims.birth_date'],
    ['an mdoc claim without element', paths(MDOC.config, [MDL_NAMESPACE]), 'config.claims.0.path'],
    ['an mdoc claim at a position', paths(MDOC.config, [MDL_NAMESPACE, 0]), 'config.claims.0.path'],
    ['an mdoc claim at a position of no namespace', paths(MDOC.config, [0, 'sex']), 'config.claims.0.path'],
    ['a position before the first', withClaimPaths(['list', -1]), 'config.claims.0.path'],
    ['a claim that is described twice', withClaimPaths(['name'], ['name']), 'config.claims.1.path'],
    ['all entries of an array and one of them', withClaimPaths(['list', null], ['list', 0]), 'config.claims.1.path'],
    ['all elements of an object', withClaimPaths(['list', null], ['list', 'a']), 'config.claims.1.path'],
    ['an element of an object', withClaimPaths(['list', 0], ['list', 'a']), 'config.claims.1.path'],
    ['array elements of two types', withClaimPaths(['list', 0, 'a'], ['list', 1, 0]), 'config.claims.1.path'],
    ['a type of proof twice', { ...SD_JWT, proofTypes: ['jwt', 'jwt'] }, 'proofTypes'],
    ['one active batch without status management', { ...SD_JWT, oneActiveSet: true }, 'oneActiveSet'],
    ['following the wallet status without status management', { ...SD_JWT, followWalletStatus: true }, 'followWalletStatus'],
    ['an SD-JWT claim at a position', paths(SD_JWT.config, [0]), 'config.claims.0.path'],
    ['an SD-JWT VC with a document type', { config: { ...SD_JWT.config, docType: MDL } }, 'config.docType'],
    ['a card without a name', { config: { ...SD_JWT.config, display: [{ locale: 'en' }] } }, 'config.display.0.name'],
    ['a claim at an empty path', withClaimPaths([]), 'config.claims.0.path'],
    ['a language twice', { config: { ...SD_JWT.config, display: [DISPLAY[0], { name: 'Other', locale: 'EN' }] } }, 'config.display'],
    [
      'a claim with two displays in one language',
      { config: { ...SD_JWT.config, claims: [{ path: ['a'], display: [DISPLAY[0], DISPLAY[0]] }] } },
      'config.claims.0.display',
    ],
    ['a bound SD-JWT VC bound otherwise', withSupported(SD_JWT, ['jwk', 'did:key']), `${BOUND}.1`],
    ['an mdoc bound as an SD-JWT VC', withSupported(MDOC, ['jwk']), `${BOUND}.0`],
    ['a binding method without key binding', { ...withSupported(SD_JWT, ['jwk']), keyBinding: false }, `${BOUND}.0`],
    ['an algorithm without a key', withSupported(SD_JWT, [], ['ES256', 'RS256']), `${SIGNED}.1`],
    ['an SD-JWT VC signed as an mdoc', withSupported(SD_JWT, [], [-7]), `${SIGNED}.0`],
    ['an mdoc with the JOSE name of an algorithm', withSupported(MDOC, [], [-257]), `${SIGNED}.0`],
    ['proofs without a key', { ...SD_JWT, keyBinding: false, proofTypes: ['jwt'] }, 'proofTypes'],
    ['attestations without a key', { ...SD_JWT, keyBinding: false, keyAttestationsRequired: {} }, 'keyAttestationsRequired'], // biome-ignore format: one case
    // SD-JWT VC section 2.2.2.3
    ...['exp', 'cnf', 'vct', 'status', 'iss', 'nbf'].flatMap((name): [string, object, string][] => [
      [`a frame that hides ${name}`, framed({ _sd: [name] }), 'disclosureFrame._sd'],
      [`a frame that hides parts of ${name}`, framed({ [name]: { _sd: ['x'] } }), `disclosureFrame.${name}`],
    ]),
    ['a frame for a claim that the schema excludes', framed({ _sd: ['nmae'] }, CLOSED), 'disclosureFrame._sd'],
    ['a frame below a claim that the schema excludes', framed({ nmae: { _sd: ['a'] } }, CLOSED), 'disclosureFrame'],
    ['a frame for properties of a text', framed({ name: { _sd: ['a'] } }, OPEN), 'disclosureFrame.name._sd'],
    ['a frame below properties of a text', framed({ name: { first: { _sd: ['a'] } } }, OPEN), 'disclosureFrame.name'],
    ['a frame for elements of an array', framed({ list: { name: { _sd: ['x'] } } }, LIST), 'disclosureFrame.list'],
    [
      'a frame for a claim that the schema never allows',
      framed({ _sd: ['never'] }, { properties: { never: false } }),
      'disclosureFrame._sd',
    ],
    ['a frame for elements of an object', framed({ _sd: [0] }, OPEN), 'disclosureFrame._sd'],
    ['a frame for a position beyond the end', framed({ list: { _sd: [2] } }, LIST), 'disclosureFrame.list._sd'],
    ['a frame that misspells a static claim', ofClaims({ _sd: ['nmae'] }), 'disclosureFrame._sd'],
    ['a frame that misspells a nested claim', ofClaims({ address: { _sd: ['stret'] } }), 'disclosureFrame.address._sd'],
    ['a frame that misspells a parent', ofClaims({ adress: { _sd: ['street'] } }), 'disclosureFrame'],
    ['a frame that misspells a claim in an array element', ofClaims({ list: { '0': { _sd: ['b'] } } }), 'disclosureFrame.list.0._sd'],
    [
      'a frame that misspells a described claim',
      { ...withClaimPaths(['name']), disclosureFrame: { _sd: ['nmae'] } },
      'disclosureFrame._sd',
    ],
    [
      'a frame that misspells below a described claim',
      { ...withClaimPaths(['address'], ['address', 'street'], ['other', 'x']), disclosureFrame: { address: { _sd: ['x'] } } },
      'disclosureFrame.address._sd',
    ],
    [
      'a frame that misspells a claim in a described array element',
      { ...withClaimPaths(['list', null, 'a']), disclosureFrame: { list: { '0': { _sd: ['b'] } } } },
      'disclosureFrame.list.0._sd',
    ],
    ['a frame beyond static claims and an open schema', { ...framed({ _sd: ['nmae'] }, OPEN), claims: STATIC }, 'disclosureFrame._sd'],
    [
      'a frame beyond static claims and a closed schema',
      { ...framed({ _sd: ['nmae'] }, CLOSED), claims: { name: 'Ada' } },
      'disclosureFrame._sd',
    ],
    ['claims of another shape than the frame', { ...framed({ name: { _sd: ['a'] } }), claims: { name: 'Ada' } }, 'claims.name'], // biome-ignore format: one case
    ['claims with a name of the format', { ...SD_JWT, claims: { a: { '...': 1 } } }, 'claims.a....'],
    ['claims of the protocol', { ...SD_JWT, claims: { 'vct#integrity': 'x' } }, 'claims.vct#integrity'],
    ['an invalid hash', { ...SD_JWT, vct: { 'extends#integrity': 'md5-x' } }, 'vct.extends#integrity'],
  ];
  for (const [description, body, path] of rejectedBodies) {
    it(`is rejected for ${description}`, () => expect(findProblemPaths(body)).to.deep.equal([path]));
  }

  it('is rejected for thousands of unknown names without listing them all', () => {
    const names = Array.from({ length: 5_000 }, (_, index) => `member-${index}`);
    const claims = Object.fromEntries(names.map((name) => [name, 1]));
    const frame = { ...framed({ _sd: names.map((name) => `${name}-x`) }), claims };
    expect(findProblemPaths(frame)).to.have.length.within(1, 20);
  });

  const messages = (body: object) =>
    CredentialConfigurationBody.safeParse({ id: 'card', ...body }).error?.issues.map(({ message }) => message);

  it('is rejected with a suggestion for a misspelt claim in the frame', () => {
    expect(messages(ofClaims({ _sd: ['nmae'] }))).to.deep.equal(['the configuration has no claim "nmae"; did you mean name?']);
    expect(messages(ofClaims({ _sd: ['zzzzzzzz'] }))).to.deep.equal([
      'the configuration has no claim "zzzzzzzz"; name it in schema.properties, config.claims or claims',
    ]);
  });

  it('reports once which claims its schema excludes, and which properties are not objects', () => {
    const closed = { ...framed({ _sd: ['nmae'] }, CLOSED), claims: { name: 'Ada' } };
    expect(messages(closed)).to.deep.equal(['the schema has no place for "nmae"']);
    const misfit = { ...ofClaims({ address: { _sd: ['zip'] } }), schema: { properties: { address: TEXT } } };
    expect(messages(misfit)).to.deep.equal(['by the schema this is not an object']);
    expect(messages(framed({ name: { _sd: ['a'] } }, OPEN))).to.deep.equal(['by the schema this is not an object']);
  });

  it('reports the supported algorithms if it declares others', () => {
    expect(messages(withSupported(SD_JWT, [], ['RS256']))?.[0]).to.match(/use ES256, ES384, ES512, EdDSA$/);
    expect(messages(withSupported(MDOC, [], [-257]))?.[0]).to.match(/use ES256, -7, -9, ES384/);
    const [config] = [{ format: 'dc+sd-jwt', credential_signing_alg_values_supported: ['ES256'] }];
    const algorithmProblems = (...parameters: Parameters<typeof findOtherAlgorithmProblems>) =>
      findOtherAlgorithmProblems(...parameters).map(({ message }) => message);
    expect(algorithmProblems(config, 'ES256')).to.deep.equal([]);
    expect(algorithmProblems(config, 'ES384')).to.deep.equal(['"ES256" is not the algorithm of its key; use ES384']);
    expect(algorithmProblems(config, undefined)).to.deep.equal(['this credential has no signing key yet']);
  });

  it('accepts both types of proof for attested keys, and only the JWT otherwise', () => {
    expect(proofTypesOf({ keyAttestationsRequired: {} })).to.deep.equal(['jwt', 'attestation']);
    for (const keyAttestationsRequired of [null, undefined]) {
      expect(proofTypesOf({ keyAttestationsRequired })).to.deep.equal(['jwt']);
    }
  });

  it('is bound to a key by default, which is proven with a JWT', () => {
    expect(aConfiguration()).to.include({ keyBinding: true, statusManagement: false });
  });
});

describe('mandatory claims', () => {
  const mandatory = (...all: (string | number | null)[][]) => ({
    format: 'dc+sd-jwt' as const,
    display: DISPLAY,
    claims: all.map((path) => ({ path, mandatory: true })),
  });
  const CLAIMS: JsonObject = { name: 'Ada', address: { town: 'London' }, list: [{ a: 1 }, { b: 2 }], none: [], numbers: { '1': 'one' } };

  it('are found at any depth', () => {
    const config = mandatory(['name'], ['address', 'town'], ['list', null, 'b'], ['list', 0, 'a'], ['vct']);
    expect(findMissingClaims(config, CLAIMS)).to.deep.equal([]);
  });

  for (const path of [
    ['age'],
    ['name', 'first'],
    ['address', 'street'],
    ['list', null, 'c'],
    ['list', 2],
    ['list', 'length'],
    ['name', 'length'],
    ['numbers', 1],
    ['none', null],
    ['toString'],
  ]) {
    // biome-ignore format: one list
    it(`are reported as missing at ${JSON.stringify(path)}`, () => {
      expect(findMissingClaims(mandatory(path), CLAIMS).map((fault) => fault.path)).to.deep.equal([`.${path.join('.')}`]);
    });
  }

  it('are checked in the namespaces of an mdoc, and only if they are mandatory', () => {
    const { config } = anMdoc({ claims: [{ path: [MDL_NAMESPACE, 'sex'], mandatory: true }, { path: [MDL_NAMESPACE, 'portrait'] }] });
    expect(findMissingClaims(config, { [MDL_NAMESPACE]: { sex: 1 } })).to.deep.equal([]);
    expect(findMissingClaims(config, { [MDL_NAMESPACE]: {} })).to.have.length(1);
  });
});

const PIXEL = 'iVBORw0KGgo=';
const IMAGES = [
  'https://acme.example/logo.png?size=2',
  'http://localhost:3000/logo.svg',
  `data:image/png;base64,${PIXEL}`,
  `data:image/svg+xml;charset=utf-8;base64,${PIXEL}`,
  'data:image/svg+xml,%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22/%3E',
];
const HARMFUL = [
  'javascript:alert(1)',
  'JavaScript:alert(1)',
  ' javascript:alert(1)',
  'java\nscript:alert(1)',
  'vbscript:x',
  'data:text/html,<script>alert(1)</script>',
  'data:text/html;base64,PHNjcmlwdD4=',
  'data:image/png,<script>',
  'data:application/javascript,alert(1)',
  'data:,x',
  'file:///etc/passwd',
  'blob:https://acme.example/1',
  'ftp://acme.example/logo.png',
  'https://user:secret@acme.example/logo.png',
  'logo.png',
  '',
  'https://acme.example/\u0000.png',
  'data:image/svg+xml,%3Csvg%',
];

describe('address that wallets and browsers show', () => {
  const SD_JWT = { id: 'card', config: { format: 'dc+sd-jwt', display: [{ name: 'Card' }] }, vct: 'urn:card:1' };
  const withDisplay = (display: object) => ({ ...SD_JWT, config: { ...SD_JWT.config, display: [{ name: 'Card', ...display }] } });
  const withVct = (vct: object | string) => ({ ...SD_JWT, vct });

  /** The image properties, each with a check of a configuration that contains it. */
  const IMAGE_LOCATIONS: Readonly<Record<string, (uri: string) => boolean>> = {
    'the logo of the issuer': (uri) => IssuanceConfigurationBody.safeParse({ display: [{ name: 'Acme', logo: { uri } }] }).success,
    'the logo of a credential': (uri) => CredentialConfigurationBody.safeParse(withDisplay({ logo: { uri } })).success,
    'the background of a credential': (uri) => CredentialConfigurationBody.safeParse(withDisplay({ background_image: { uri } })).success,
    'the logo of a type': (uri) =>
      CredentialConfigurationBody.safeParse(
        withVct({ display: [{ name: 'Card', locale: 'en', rendering: { simple: { logo: { uri } } } }] }),
      ).success,
    'a template of a type': (uri) =>
      CredentialConfigurationBody.safeParse(withVct({ display: [{ name: 'Card', locale: 'en', rendering: { svg_templates: [{ uri }] } }] }))
        .success,
  };

  for (const [location, isAccepted] of Object.entries(IMAGE_LOCATIONS)) {
    for (const uri of IMAGES) it(`is accepted as ${location}: ${uri}`, () => expect(isAccepted(uri)).to.equal(true));
    for (const uri of HARMFUL) {
      it(`is rejected as ${location}: ${JSON.stringify(uri)}`, () => expect(isAccepted(uri)).to.equal(false));
    }
  }

  for (const uri of ['javascript:alert(1)', 'JAVASCRIPT:x', ' data:text/html,x', 'file:///x', 'vbscript:x']) {
    it(`is rejected as a type name, a schema and an identifier of a list: ${uri}`, () => {
      for (const vct of [uri, { vct: uri }, { extends: uri }, { schema_uri: uri }]) {
        expect(CredentialConfigurationBody.safeParse(withVct(vct)).success, JSON.stringify(vct)).to.equal(false);
      }
      const data = (LoTEType: string) => ({ LoTE: { ListAndSchemeInformation: { LoTEType } } });
      expect(TrustListData.safeParse(data(uri)).success).to.equal(false);
      expect(TrustListData.safeParse(data('https://acme.example/type')).success).to.equal(true);
    });
  }

  it('is stored in the form that browsers send', () => {
    const uri = 'https://acme.example/logo für alle.png';
    const { display } = IssuanceConfigurationBody.parse({ display: [{ name: 'Acme', logo: { uri } }] });
    expect(display[0]?.logo?.uri).to.equal('https://acme.example/logo%20f%C3%BCr%20alle.png');
  });

  for (const [uri, normal] of [
    ['https://acme.example/a|b.png', 'https://acme.example/a%7Cb.png'],
    ['https://acme.example/%.png', 'https://acme.example/%25.png'],
    ['https://acme.example/logo.png?filter[x]=1', 'https://acme.example/logo.png?filter%5Bx%5D=1'],
    ['https://münchen.example/{x}.png', 'https://xn--mnchen-3ya.example/%7Bx%7D.png'],
  ] as const) {
    it(`is stored as ${normal} when ${uri} is written`, () => {
      const body = IssuanceConfigurationBody.parse({ display: [{ name: 'Acme', logo: { uri } }] });
      expect(body.display[0]?.logo?.uri).to.equal(normal);
    });
  }

  it('is omitted from published metadata if an earlier release accepted an invalid one', () => {
    const invalidUris = { logo: { uri: 'https://acme.example/a|b.png' }, background_image: { uri: 'logo.png' } };
    const valid = { logo: { uri: 'https://acme.example/ä.png' } };
    const times = { createdAt: new Date(0), updatedAt: new Date(0) } as const;
    const config = { ...SD_JWT.config, display: [{ name: 'Card', locale: 'en', ...invalidUris }] };
    const vct = { display: [{ name: 'Card', locale: 'en', rendering: { simple: { ...invalidUris, text_color: '#fff' } } }] };
    const storedConfiguration = { ...SD_JWT, ...times, keyBinding: true, config, vct } as unknown as CredentialConfiguration;
    const issuance = {
      ...defaultIssuance('Acme'),
      display: [
        { name: 'Acme', ...invalidUris },
        { name: 'Ä', ...valid },
      ],
    };
    const metadata = JSON.stringify(
      issuerMetadata({
        issuer: 'https://issuer.example/acme',
        issuance: issuance as unknown as IssuerMetadataParts['issuance'],
        configurations: [storedConfiguration],
        signingAlgorithm: () => 'ES256',
        encryptionKeys: [],
      }),
    );
    expect(metadata).to.include('"name":"Card"').and.include('https://acme.example/%C3%A4.png');
    const type = JSON.stringify(typeMetadata(storedConfiguration, 'https://issuer.example/acme', undefined));
    expect(type).to.include('#fff');
    for (const text of [metadata, type]) expect(text).not.to.include('a|b').and.not.to.include('logo.png');
  });

  it('is returned as it was stored by an earlier release', () => {
    const times = { id: 'default', createdAt: new Date(0), updatedAt: new Date(0) } as const;
    const display = [{ name: 'Acme', logo: { uri: 'javascript:alert(1)' } }];
    const { walletProviders: _later, ...known } = defaultIssuance('Acme');
    const storedConfiguration = { ...known, ...times, display } as unknown as IssuanceConfiguration;
    expect(withDefaults(storedConfiguration)).to.deep.include({ display, walletProviders: [] });
  });
});
