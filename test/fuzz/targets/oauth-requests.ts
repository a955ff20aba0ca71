import { createSecretKey } from 'node:crypto';
import { readForm } from '../../../adapters/http/input/read-body.ts';
import { parseAccessTokenPayload } from '../../../domain/oauth/access-token.ts';
import { parseAuthorizationRequest } from '../../../domain/oauth/authorization-request.ts';
import { createChallenge, parseChallenge } from '../../../domain/oauth/challenge.ts';
import { parseAssertion } from '../../../domain/oauth/client-assertion.ts';
import { parseHandle } from '../../../domain/oauth/handle.ts';
import { parseAnswer } from '../../../domain/oauth/interaction.ts';
import { parseInteractionTypes } from '../../../domain/oauth/interaction-draft.ts';
import { createRefreshToken, parseRefreshToken } from '../../../domain/oauth/refresh-token.ts';
import { metadataAddresses, parseServerMetadata } from '../../../domain/oauth/server-metadata.ts';
import { parseTokenRequest } from '../../../domain/oauth/token-request.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { isJsonObject, parseJson } from '../../../domain/shared/json.ts';
import { AUDIENCE, NOW } from '../constants.ts';
import { ensure, isInstanceOfAny, neverExpected, type Target } from '../engine/target.ts';
import { attempt, JOSE_WORDS, text } from './seeds.ts';

const expected = isInstanceOfAny(Failure);
const configurations = [
  { id: 'pid', scope: 'pid' },
  { id: 'mdl', scope: 'mdl' },
];
const FORM_WORDS = [
  ...[
    'grant_type=',
    'code=',
    'tx_code=',
    'refresh_token=',
    'scope=',
    'state=',
    'client_id=',
    'redirect_uri=',
    'response_type=',
    'resource=',
  ],
  ...[
    'code_challenge=',
    'code_challenge_method=',
    'S256',
    'authorization_code',
    'request_uri=',
    'authorization_details=',
    '%00',
    '%EF%BF%BD',
    '%FF',
    '+',
    '&&',
    '&',
  ],
  ...['javascript:', 'https:', '%5B%5D', '%7B%7D', 'http://127.0.0.1', '__proto__=', 'pre-authorized_code=', 'openid_credential'],
];

function forms(input: Buffer): void {
  const form = readForm(text(input));
  for (const [name, value] of Object.entries(form)) {
    ensure(new URLSearchParams(text(input)).getAll(name).join() === value, 'a parameter is what was sent');
  }
  attempt(() => parseAuthorizationRequest(form, { issuer: AUDIENCE, configurations }));
  attempt(() => parseTokenRequest(form, 'chained' as never, 'https://issuer.example/acme'));
  attempt(() => parseInteractionTypes(form['interaction_types_supported']));
  attempt(() => parseAnswer({ kind: 'web', hasReturned: true } as never, form, 'challenge'));
  attempt(() => parseAssertion(form));
  parseTokenRequest(form, 'built-in', 'https://issuer.example/acme');
}

const key = createSecretKey(Buffer.alloc(32, 1));
const ownFields = [
  createRefreshToken(key, 't', { grantId: 'a'.repeat(20), generation: 3 }),
  createChallenge(key, 't', 'c_nonce', NOW, Buffer.alloc(10, 2)),
  `${'a'.repeat(20)}.${'b'.repeat(24)}`,
];

function ownTokens(input: Buffer): void {
  const token = text(input);
  const isOurs = parseRefreshToken([key], 't', token) !== undefined || parseChallenge([key], 't', 'c_nonce', NOW, token) !== undefined;
  ensure(!isOurs || ownFields.includes(token), 'nobody makes tokens of this service');
  parseHandle(token);
}

const payload = {
  ...{ iss: AUDIENCE, aud: AUDIENCE, sub: 's', jti: 'j', issuer_state: 'i', grant_id: 'g', iat: 1, exp: 2e9, cnf: { jkt: 'x' } },
  ...{ scope: 'pid', client_id: 'c', credential_configuration_ids: ['pid'], actions_done: ['a'] },
};
const metadata = {
  issuer: 'https://as.example/a',
  authorization_endpoint: 'https://as.example/authorize',
  token_endpoint: 'https://as.example/token',
  jwks_uri: 'https://as.example/jwks',
  token_endpoint_auth_methods_supported: ['private_key_jwt'],
};
const details = encodeURIComponent('[{"type":"openid_credential","credential_configuration_id":"pid"}]');
const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

export const OAUTH_REQUESTS: readonly Target[] = [
  {
    name: 'forms',
    expected,
    seeds: [
      'grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Apre-authorized_code&pre-authorized_code=c&tx_code=1',
      `grant_type=authorization_code&code=c&redirect_uri=https%3A%2F%2Fw.example&code_verifier=v&authorization_details=${details}`,
      `response_type=code&client_id=w&redirect_uri=https%3A%2F%2Fw.example%2Fcb&code_challenge=${challenge}&code_challenge_method=S256&scope=pid&state=s`,
      `response_type=code&client_id=w&redirect_uri=app.w%3A%2Fcb&authorization_details=${details}&interaction_types_supported=a,b`,
      'grant_type=refresh_token&refresh_token=r&scope=pid',
    ],
    dictionary: FORM_WORDS,
    decode: forms,
  },
  { name: 'own-tokens', expected: neverExpected, seeds: ownFields, dictionary: ['.', '0', '-', '_'], decode: ownTokens },
  {
    name: 'access-token-payload',
    expected: neverExpected,
    seeds: [JSON.stringify(payload), JSON.stringify({ ...payload, authorization_details: [{ credential_configuration_id: 'pid' }] })],
    dictionary: [...JOSE_WORDS, ...Object.keys(payload), 'authorization_details', `${AUDIENCE}/chained-as`],
    decode: (input) => {
      const claims = parseJson(text(input));
      if (isJsonObject(claims)) parseAccessTokenPayload(claims, AUDIENCE, NOW);
    },
  },
  {
    name: 'server-metadata',
    expected: neverExpected,
    seeds: [JSON.stringify(metadata)],
    dictionary: [...Object.keys(metadata), 'http://', 'https://', '#', '?', '\\', '@', ':0'],
    decode: (input) => {
      const document = parseJson(text(input));
      if (!isJsonObject(document)) return;
      const read = parseServerMetadata(document, metadata.issuer);
      if (typeof read === 'string') return;
      for (const address of [read.authorizationEndpoint, read.tokenEndpoint, read.jwksUri]) {
        ensure(address === undefined || new URL(address).protocol === 'https:', 'no address is weaker than the issuer');
      }
      metadataAddresses(String(document['token_endpoint']));
    },
  },
];
