import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { OpenRequests, ServeDcApiRequest } from '../../../application/verification/serve-request-object.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import { acceptAndEnd } from '../../../domain/sessions/session-change.ts';
import { Failure, type FailureCode } from '../../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import { invocationUri } from '../../../domain/shared/invocation-uri.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { bindingOf } from '../../../domain/verification/binding.ts';
import { isUndecrypted, parseDcApiData, parseForm, parsePlaintext } from '../../../domain/verification/envelope.ts';
import { acceptedAlgorithms, requestParameters } from '../../../domain/verification/request-object.ts';
import { deviceTransactionData, keyBoundTransactionData } from '../../../domain/verification/transaction-data.ts';
import type { DcApiVerification, PostedVerification } from '../../../domain/verification/verification-request.ts';
import { parseWalletMetadata, parseWalletParameters, type RequestRequirements } from '../../../domain/verification/wallet-parameters.ts';
import { decode } from '../../support/present.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { outcomeOf } from '../wallet-kit.ts';
import { ACME, World } from './kit.ts';

const PARAMETERS = { responseMode: 'direct_post', nonce: 'n', dcqlQuery: { credentials: [] } };

describe('parameters of a presentation request', () => {
  it('omit parameters that are not requested', () => {
    const { client_metadata, ...others } = requestParameters(PARAMETERS);
    expect(Object.keys(client_metadata as object)).to.deep.equal(['vp_formats_supported']);
    expect(Object.keys(others)).to.deep.equal(['response_type', 'response_mode', 'nonce', 'dcql_query']);
  });

  it('contain the display name and logo of the operator, if there are any', () => {
    const requester = { clientName: 'Acme', logoUri: 'https://acme.example/logo.png' };
    const metadataOf = (display: object) => requestParameters({ ...PARAMETERS, display: display })['client_metadata'];
    expect(metadataOf(requester)).to.include({ client_name: 'Acme', logo_uri: requester.logoUri });
    for (const empty of [{}, { clientName: null, logoUri: null }]) {
      expect(metadataOf(empty)).not.to.have.any.keys('client_name', 'logo_uri');
    }
  });

  it('contain the key, the transactions and the attachments', () => {
    const [encryptionJwk, verifierInfo] = [{ kty: 'EC' }, [{ format: 'x', data: 'y' }]];
    const request = { ...PARAMETERS, encryptionJwk, transactionData: ['e30'], verifierInfo };
    const parameters = requestParameters(request);
    expect(parameters).to.deep.include({ transaction_data: ['e30'], verifier_info: verifierInfo });
    expect(parameters['client_metadata']).to.deep.include({ jwks: { keys: [encryptionJwk] } });
  });

  it('are added to a link, strings unchanged and other values as JSON', () => {
    const parameters = { client_id: 'a:b', dcql_query: { a: [1] } };
    const query = 'client_id=a%3Ab&dcql_query=%7B%22a%22%3A%5B1%5D%7D';
    expect(invocationUri('openid4vp://', parameters)).to.equal(`openid4vp://?${query}`);
    expect(invocationUri('https://w.example/?x=1', parameters)).to.equal(`https://w.example/?x=1&${query}`);
  });
});

describe('audience of a presentation', () => {
  const verification = { kind: 'verification', offerRequest: {}, dcqlQuery: {}, nonce: 'n', requestUrl: '' } as const;

  it('is the client id for the response address', () => {
    const responseUri = 'https://vidimus.example/acme/response/1';
    const posted: PostedVerification = {
      ...verification,
      ...{ responseMode: 'direct_post', clientId: 'x509_hash:h', responseUri, state: 's' },
    };
    const { audience, recipients, transcripts } = bindingOf(posted);
    expect([audience, recipients]).to.deep.equal(['x509_hash:h', ['x509_hash:h', 'https://vidimus.example']]);
    expect(transcripts()).to.have.length(1);
  });

  it('is each page that may use the Digital Credentials API', () => {
    const origins = ['https://shop.example', 'https://www.shop.example'];
    const pages = ['origin:https://shop.example', 'origin:https://www.shop.example'];
    const unsigned: DcApiVerification = { ...verification, responseMode: 'dc_api', origins };
    const binding = bindingOf(unsigned);
    expect([binding.audience, binding.recipients]).to.deep.equal([pages, [...origins, ...pages]]);
    expect(new Set(binding.transcripts().map(String)).size, 'one for each').to.equal(2);
    // OpenID4VP 1.0 appendix A.4: the audience of a signed request is the origin of the page, too
    const signedRequest = bindingOf({ ...unsigned, clientId: 'x509_hash:h' });
    expect([signedRequest.audience, signedRequest.recipients]).to.deep.equal([pages, [...origins, ...pages, 'x509_hash:h']]);
  });
});

describe('transactions that a credential confirms', () => {
  const objects = [
    { type: 'pay', credential_ids: ['card'], transaction_data_hashes_alg: ['sha-384'] },
    { type: 'sign', credential_ids: ['card', 'pid'] },
    { type: 'toString', credential_ids: ['pid'] },
  ];
  const request = {
    transactionData: ['first', 'second', 'third'],
    transactionDataObjects: objects,
    transactionDataElements: { pay: { namespace: 'n', element: 'e' } },
  };

  it('are those of its query, with one or several credentials', () => {
    expect(keyBoundTransactionData(request, 'card')).to.deep.equal({
      transactionData: ['first'],
      alternativeTransactionData: ['second'],
      authenticatedTransactionData: [],
    });
    expect(keyBoundTransactionData(request, 'other')).to.deep.equal({
      transactionData: [],
      alternativeTransactionData: [],
      authenticatedTransactionData: [],
    });
    const transactionDataSchemas = { sign: 'urn:eudi:sca:payment:1' } as const;
    const { authenticatedTransactionData } = keyBoundTransactionData({ ...request, transactionDataSchemas }, 'card');
    expect(authenticatedTransactionData).to.deep.equal(['second']);
    expect(keyBoundTransactionData({}, 'card').transactionData).to.deep.equal([]);
  });

  it('name only the element of their type', () => {
    const incomplete = { namespace: '', element: '', algorithms: [] };
    expect(deviceTransactionData(request, 'card')).to.deep.equal([
      { namespace: 'n', element: 'e', text: 'first', required: true, algorithms: ['sha-384'] },
      { ...incomplete, text: 'second', required: false },
    ]);
    expect(deviceTransactionData(request, 'pid')).to.deep.equal([
      { ...incomplete, text: 'second', required: false },
      { ...incomplete, text: 'third', required: true },
    ]);
    const withArrayType = { ...request, transactionDataObjects: [{ credential_ids: ['card'], type: ['pay'] }] };
    expect(deviceTransactionData(withArrayType, 'card'), 'a type that is not a string').to.deep.equal([
      { ...incomplete, text: 'first', required: true },
    ]);
  });
});

const REQUEST = { state: 's', responseMode: 'direct_post.jwt' } as const;
const PLAIN = { state: 's', responseMode: 'direct_post' } as const;

/** Returns the kind of the response, or the message of a failure. */
function outcome(parse: () => ReturnType<typeof parseForm>): string {
  try {
    const parsed = parse();
    if (parsed.kind === 'refused') return `${parsed.code}: ${parsed.detail}`;
    return parsed.kind === 'wallet_error' ? `${parsed.error.code}: ${parsed.error.message}` : parsed.kind;
  } catch (error) {
    if (error instanceof Failure) return `untouched: ${error.message}`;
    throw error;
  }
}

describe('posted response', () => {
  const forms: readonly [string, Parameters<typeof parseForm>, RegExp][] = [
    ['an encrypted answer', [{ response: 'a' }, REQUEST], /^encrypted$/],
    ['an encrypted answer with its state outside as well', [{ response: 'a', state: 's' }, REQUEST], /^encrypted$/],
    ['an encrypted answer with another state outside', [{ response: 'a', state: 'x' }, REQUEST], /^untouched: state/],
    [
      'an encrypted answer and an error',
      [{ response: 'a', error: 'e' }, REQUEST],
      /^response_mode: response together with other parameters/,
    ],
    ['a plain answer', [{ vp_token: '{}', state: 's' }, PLAIN], /^presentations$/],
    ['an answer that is not JSON', [{ vp_token: '{', state: 's' }, PLAIN], /^malformed: vp_token/],
    ['an error without a description', [{ error: 'e', state: 's' }, PLAIN], /the wallet returned an error$/],
    ['an error with a description', [{ error: 'e', error_description: 'no', state: 's' }, PLAIN], /: no$/],
  ];
  for (const [description, display, expected] of forms) {
    it(`is classified: ${description}`, () => expect(outcome(() => parseForm(...display))).to.match(expected));
  }
});

describe('encrypted response', () => {
  const texts: readonly [string, string, RegExp][] = [
    ['an answer', '{"state":"s","vp_token":{}}', /^presentations$/],
    ['an answer with another state', '{"state":"x","vp_token":{}}', /^untouched: state/],
    ['nothing', '{"state":"s"}', /^untouched: send/],
    ['an answer and an error', '{"state":"s","vp_token":{},"error":"e"}', /^response_mode: vp_token and/],
    ['an error', '{"state":"s","error":"access_denied"}', /^access_denied: /],
    ['an error that is not a string', '{"state":"s","error":["access_denied"]}', /^wallet_error: the wallet/],
  ];
  for (const [description, text, expected] of texts) {
    it(`is classified: ${description}`, () => expect(outcome(() => parsePlaintext(text, REQUEST))).to.match(expected));
  }

  describe('of a request with one state per link', () => {
    const twoLinks = { ...REQUEST, crossDeviceState: 'other' };
    const parameters: readonly [string, string][] = [
      ['presentation', '"vp_token":{}'],
      ['error', '"error":"access_denied"'],
    ];
    const states = ['s', 'other'];
    for (const [kind, parameter] of parameters) {
      for (const outer of states) {
        for (const inner of states) {
          const isSame = outer === inner;
          it(`${isSame ? 'accepts' : 'rejects'} an encrypted ${kind} with state ${inner} inside and ${outer} outside`, () => {
            const parsed = parseForm({ response: 'a', state: outer }, twoLinks);
            if (parsed.kind !== 'encrypted') throw new Error(parsed.kind);
            const parse = () => parsePlaintext(`{"state":"${inner}",${parameter}}`, twoLinks, parsed.outerState);
            expect(outcome(parse)).to.match(isSame ? /^presentations$|^access_denied/ : /^untouched: state/);
          });
        }
      }
    }
  });

  it('has no state through the Digital Credentials API', () => {
    expect(outcome(() => parsePlaintext('{"vp_token":{}}'))).to.equal('presentations');
  });

  it('is identified by its state if it cannot be decrypted', () => {
    expect(isUndecrypted(parsePlaintext(undefined, REQUEST))).to.equal(true);
    expect(isUndecrypted(parsePlaintext('[]', REQUEST))).to.equal(false);
  });
});

describe('response through the Digital Credentials API', () => {
  const data: readonly [string, Parameters<typeof parseDcApiData>[0], RegExp, RegExp][] = [
    ['an encrypted answer', { response: 'a' }, /^encrypted$/, /^response_mode: encrypted without/],
    ['an answer beside an error that is null', { response: 'a', error: null }, /^encrypted$/, /^response_mode/],
    ['an encrypted answer beside a plain one', { response: 'a', vp_token: {} }, /: response together/, /: response together/],
    ['an encrypted answer beside an error', { response: 'a', error: 'e' }, /: response together/, /: response together/],
    ['an answer that is not a string', { response: {} }, /^malformed: response is/, /^response_mode/],
    ['a plain answer', { vp_token: {}, error: null }, /^response_mode: not encrypted/, /^presentations$/],
    ['an error', { error: 'access_denied' }, /^access_denied: the wallet/, /^access_denied: the wallet/],
    ['an answer and an error', { vp_token: {}, error: 'e' }, /: vp_token and error/, /: vp_token and error/],
    ['nothing', {}, /^untouched: send/, /^untouched: send/],
    ['an error that is null', { error: null }, /^untouched: send/, /^untouched: send/],
  ];
  for (const [description, display, encrypted, plain] of data) {
    it(`is classified: ${description}`, () => {
      expect(outcome(() => parseDcApiData(display, { responseMode: 'dc_api.jwt' }))).to.match(encrypted);
      expect(outcome(() => parseDcApiData(display, { responseMode: 'dc_api' }))).to.match(plain);
    });
  }
});

const jwkFor = (namedCurve: string, properties: JsonObject = {}): JsonObject => ({
  ...(generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' }) as JsonObject),
  ...properties,
});
const KEY_PROPERTIES = jwkFor('P-256');
const KEY = { ...KEY_PROPERTIES, use: 'enc', alg: 'ECDH-ES', kid: 'k' };
const OFF_CURVE = { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) };
const UNSUPPORTED_ENC = { request_object_encryption_enc_values_supported: ['A128CBC-HS256'] };

const REQUIREMENTS: RequestRequirements = {
  formats: acceptedAlgorithms(['dc+sd-jwt', 'mso_mdoc']),
  responseMode: 'direct_post.jwt',
  clientIdPrefix: 'x509_hash',
  signedWith: 'ES256',
  encrypts: true,
};

const walletMetadata = (metadata: JsonObject, demands: RequestRequirements | undefined = REQUIREMENTS) =>
  parseWalletParameters(metadata, demands, undefined);
const keys = (...jwks: (JsonObject | string)[]) => ({ jwks: { keys: jwks } });
const formats = (vp_formats_supported: JsonObject | string | null) => ({ vp_formats_supported });

function messageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure && error.code === 'invalid_request') return error.message;
    throw error;
  }
  return 'accepted';
}

describe('wallet metadata', () => {
  for (const [description, parameters] of Object.entries({
    'no nonce at all': { wallet_nonce: '' },
    'a nonce of two lines': { wallet_nonce: 'a\nb' },
    'metadata that are not JSON': { wallet_metadata: '{' },
    'metadata that are not an object': { wallet_metadata: '[]' },
  })) {
    it(`are rejected with ${description}`, () => {
      expect(messageOf(() => parseWalletMetadata(parameters))).to.match(/^wallet_(nonce|metadata) (is|must)/);
    });
  }

  it('may be absent, and are returned unchanged', () => {
    expect(parseWalletMetadata({})).to.deep.equal({});
    expect(parseWalletMetadata({ wallet_nonce: 'n', wallet_metadata: '{"a":1}' })).to.deep.equal({ a: 1 });
    expect(parseWalletParameters({ issuer: 'https://wallet.example' }, REQUIREMENTS, 'n')).to.deep.equal({
      nonce: 'n',
      issuer: 'https://wallet.example',
    });
    expect(walletMetadata({})).to.deep.equal({});
    expect(walletMetadata({ issuer: `https://${'a'.repeat(2040)}` })).to.have.property('issuer');
  });

  const acceptedMetadata: Readonly<Record<string, JsonObject>> = {
    'one of the formats, without algorithms': formats({ 'dc+sd-jwt': {}, other: {} }),
    'one of the formats, with one supported algorithm': formats({
      'dc+sd-jwt': { 'sd-jwt_alg_values': ['RS256', 'ES256'], 'kb-jwt_alg_values': ['EdDSA'] },
    }),
    'the other format, by numbers': formats({ mso_mdoc: { issuerauth_alg_values: [-7] } }),
    'one supported format beside an unsupported one': formats({ 'dc+sd-jwt': { 'sd-jwt_alg_values': ['RS256'] }, mso_mdoc: {} }),
    'all requested formats': {
      response_types_supported: ['code', 'vp_token'],
      response_modes_supported: ['direct_post.jwt'],
      client_id_prefixes_supported: ['x509_hash'],
      request_object_signing_alg_values_supported: ['ES256'],
      authorization_encryption_alg_values_supported: ['ECDH-ES'],
      authorization_encryption_enc_values_supported: ['A256GCM'],
    },
  };
  for (const [description, metadata] of Object.entries(acceptedMetadata)) {
    it(`are accepted with ${description}`, () => expect(walletMetadata(metadata)).to.deep.equal({}));
  }

  const rejectedMetadata: Readonly<Record<string, JsonObject>> = {
    'formats that are not an object': formats('dc+sd-jwt'),
    'formats that are null': formats(null),
    'other formats': formats({ jwt_vc_json: {} }),
    'a format that is not an object': formats({ 'dc+sd-jwt': 'yes' }),
    'other algorithms of the issuer': formats({ 'dc+sd-jwt': { 'sd-jwt_alg_values': ['RS256'] } }),
    'other algorithms of the holder': formats({ 'dc+sd-jwt': { 'sd-jwt_alg_values': ['ES256'], 'kb-jwt_alg_values': ['RS256'] } }),
    'an algorithm that is not a list': formats({ 'dc+sd-jwt': { 'sd-jwt_alg_values': 'ES256' } }),
    'other response types': { response_types_supported: ['code'] },
    'a response type that is not a list': { response_types_supported: 'vp_token' },
    'other response modes': { response_modes_supported: ['direct_post'] },
    'other prefixes': { client_id_prefixes_supported: ['redirect_uri'] },
    'other algorithms of requests': { request_object_signing_alg_values_supported: ['RS256'] },
    'other key agreements': { authorization_encryption_alg_values_supported: ['RSA-OAEP'] },
    'other content encryption': { authorization_encryption_enc_values_supported: ['A128CBC-HS256'] },
    'an issuer that is not a string': { issuer: 1 },
    'an issuer that is too long': { issuer: `https://${'a'.repeat(2041)}` },
    'no key set': { jwks: 'keys' },
    'a key set without keys': { jwks: {} },
    'another content encryption of requests': { ...keys(KEY), ...UNSUPPORTED_ENC },
    'another key agreement of requests': { request_object_encryption_alg_values_supported: ['RSA-OAEP'] },
    'a wish for encryption without a key': { request_object_encryption_alg_values_supported: ['ECDH-ES'] },
  };
  for (const [description, metadata] of Object.entries(rejectedMetadata)) {
    it(`are rejected with ${description}`, () => expect(messageOf(() => walletMetadata(metadata))).to.not.equal('accepted'));
  }

  it('are checked for encryption only when the answer is encrypted, and not without a requirement', () => {
    const metadata = { authorization_encryption_alg_values_supported: ['RSA-OAEP'] };
    expect(walletMetadata(metadata, { ...REQUIREMENTS, encrypts: false })).to.deep.equal({});
    expect(parseWalletParameters({ response_types_supported: ['code'] }, undefined, undefined)).to.deep.equal({});
  });
});

describe('encryption key of a wallet', () => {
  it('is the first usable key, with its identifier', () => {
    expect(walletMetadata(keys('none', OFF_CURVE, jwkFor('P-384'), KEY, jwkFor('P-256')))).to.deep.equal({
      recipient: { ...KEY_PROPERTIES, kid: 'k' },
      enc: 'A128GCM',
    });
    const withoutKid = { recipient: KEY_PROPERTIES, enc: 'A128GCM' };
    expect(walletMetadata(keys({ ...KEY_PROPERTIES }))).to.deep.equal(withoutKid);
    expect(walletMetadata(keys({ ...KEY, kid: 1 })), 'a kid that is not a string').to.deep.equal(withoutKid);
    expect(walletMetadata(keys({ ...KEY, kid: 'k'.repeat(1025) })), 'or too long').to.deep.equal(withoutKid);
  });

  it('is used with an algorithm that the wallet can decrypt', () => {
    const metadata = { ...keys(KEY), request_object_encryption_enc_values_supported: ['A256GCM'] };
    expect(walletMetadata(metadata)).to.have.property('enc', 'A256GCM');
  });

  it('is ignored if it is for signatures, on another curve or without a purpose', () => {
    for (const unusableKey of [{ ...KEY, use: 'sig' }, jwkFor('P-384'), OFF_CURVE, { ...KEY_PROPERTIES, alg: 'ES256' }]) {
      expect(walletMetadata(keys(unusableKey))).to.deep.equal({});
    }
  });

  for (const [description, key] of Object.entries({
    'is declared for encryption': jwkFor('P-384', { use: 'enc' }),
    'is of X25519': { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) },
    'is of X448': { kty: 'OKP', crv: 'X448', x: 'A'.repeat(75) },
    'is for key agreement with key wrapping': { ...KEY_PROPERTIES, alg: 'ECDH-ES+A128KW' },
  })) {
    it(`is missing if the only one ${description}`, () => {
      expect(messageOf(() => walletMetadata(keys(key)))).to.match(/no encryption key/);
    });
  }
});

const ORIGIN = 'https://shop.example';

describe('ServeDcApiRequest', () => {
  let world: World;
  let serveRequest: ServeDcApiRequest;

  before(async () => {
    world = await World.make();
    serveRequest = new ServeDcApiRequest({ openRequests: new OpenRequests(world) });
    await world.configure({ expectedOrigins: [ORIGIN] });
    await world.configure({ id: 'unsigned', expectedOrigins: [ORIGIN], dcApiRequest: 'unsigned' });
  });

  const createRequest = async (changes: object = {}): Promise<Session> => {
    const body = { response_type: 'dc-api', requestId: 'card', ...changes } as const;
    const caller = cachedCaller(await world.caller());
    const { session } = await world.createPresentationRequest.execute(caller, body);
    return world.session(session);
  };
  const execute = (publicId: PublicId, tenantId = ACME) => serveRequest.execute(tenantId, publicId);
  const onlyRequest = ({ requests }: JsonObject) => (requests as { protocol: string; data: JsonObject }[])[0];

  it('returns the same signed request to the page each time, and records the first time', async () => {
    const { publicId, id } = await createRequest();
    const served = await execute(publicId);
    const request = onlyRequest(served);
    expect(request?.protocol).to.equal('openid4vp-v1-signed');
    const { payload } = decode(String(request?.data['request']));
    expect(payload).to.deep.include({ expected_origins: [ORIGIN], response_mode: 'dc_api.jwt' });
    expect(await world.session(id)).to.deep.include({ status: 'fetched', version: 2 });
    expect(await execute(publicId)).to.deep.equal(served);
    expect((await world.session(id)).version).to.equal(2);
  });

  it('returns an unsigned request as its parameters', async () => {
    const request = onlyRequest(await execute((await createRequest({ requestId: 'unsigned' })).publicId));
    expect(request?.protocol).to.equal('openid4vp-v1-unsigned');
    expect(request?.data).to.have.property('dcql_query');
  });

  type RejectionCase = readonly [description: string, code: FailureCode, prepare: (session: Session) => Promise<unknown>];
  const rejections: readonly RejectionCase[] = [
    ['an unknown request', 'not_found', () => execute('unknown' as PublicId)],
    ['a request of another tenant', 'not_found', ({ publicId }) => execute(publicId, 'unknown' as TenantId)],
    ['a request for a wallet', 'not_found', async () => execute((await world.request()).publicId)],
    [
      'a request that has expired',
      'gone',
      async ({ publicId, expiresAt }) => {
        const now = world.clock.time;
        world.clock.time = expiresAt.getTime();
        return execute(publicId).finally(() => {
          world.clock.time = now;
        });
      },
    ],
    [
      'a request that was answered',
      'gone',
      async (session) => {
        await world.store.commit(ACME, { session: acceptAndEnd(session, 'complete', {}) }, world.clock.now());
        return execute(session.publicId);
      },
    ],
    [
      'a request that another process ended, while this one remembers it',
      'gone',
      async ({ publicId, id }) => {
        const change = { id, anytime: ['active'], to: 'failed' } as const;
        await world.store.commit(ACME, { session: change }, world.clock.now());
        return execute(publicId);
      },
    ],
    [
      'a request without its signing key',
      'gone',
      async ({ publicId }) => {
        const chain = await world.store.forTenant(ACME, (repositories) => repositories.keyChains.get('access'));
        await world.store.forTenant(ACME, (repositories) => repositories.keyChains.remove('access'), { by: 'system' });
        return execute(publicId).finally(() =>
          world.store.forTenant(ACME, (repositories) => repositories.keyChains.add(chain), { by: 'system' }),
        );
      },
    ],
  ];
  for (const [description, code, prepareFailure] of rejections) {
    it(`rejects ${description}`, async () => {
      expect(await outcomeOf(prepareFailure(await createRequest()))).to.equal(code);
    });
  }
});
