import { z } from 'zod';
import { parseDecrypted, parsePresentation } from '../../../domain/oauth/interaction-presentation.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { isJsonObject, parseJson } from '../../../domain/shared/json.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { parseDcApiData, parseForm, parsePlaintext } from '../../../domain/verification/envelope.ts';
import { acceptedAlgorithms } from '../../../domain/verification/request-object.ts';
import { parsePasted } from '../../../domain/verification/trial/pasted-presentation.ts';
import { claimPathsOf, readUnverified } from '../../../domain/verification/trial/unverified-presentation.ts';
import { parseWalletMetadata, parseWalletParameters } from '../../../domain/verification/wallet-parameters.ts';
import { ensure, isInstanceOfAny, type Target } from '../engine/target.ts';
import { attempt, CBOR_WORDS, JOSE_WORDS, JSON_WORDS, KEYS, lines, seed, text } from './seeds.ts';

const Form = z.record(z.string(), z.string());

function envelope(input: Buffer): void {
  const [firstLine = '', ...furtherLines] = lines(input);
  const document = parseJson(firstLine);
  for (const responseMode of ['direct_post', 'direct_post.jwt'] as const) {
    const request = { state: 'state-1', responseMode } as never;
    const form = Form.safeParse(document);
    attempt(() => form.success && parseForm(form.data, request));
    attempt(() => parsePlaintext(furtherLines[0] ?? firstLine, request));
  }
  for (const responseMode of ['dc_api', 'dc_api.jwt'] as const) {
    if (isJsonObject(document)) attempt(() => parseDcApiData(document, { responseMode }));
  }
  for (const isEncrypted of [true, false]) attempt(() => parsePresentation(firstLine, isEncrypted));
  parseDecrypted(firstLine);
}

const demands = {
  formats: acceptedAlgorithms(['dc+sd-jwt']),
  responseMode: 'direct_post.jwt',
  clientIdPrefix: 'x509_hash',
  signedWith: 'ES256',
  encrypts: true,
};
const metadata = {
  vp_formats_supported: { 'dc+sd-jwt': {} },
  client_id_prefixes_supported: ['x509_hash'],
  issuer: 'https://wallet.example',
  jwks: { keys: [{ ...KEYS.encryption.publicJwk, use: 'enc' }] },
  request_object_signing_alg_values_supported: ['ES256'],
  request_object_encryption_alg_values_supported: ['ECDH-ES'],
  request_object_encryption_enc_values_supported: ['A128GCM'],
};

/** The complete processing of pasted text before the verification of signatures. */
function pasted(input: Buffer): void {
  const pastedItems = parsePasted(text(input));
  ensure(pastedItems.length <= 10, 'nobody tries more at once');
  for (const pastedItem of pastedItems) {
    const peeked = readUnverified(pastedItem);
    ensure(peeked === undefined || claimPathsOf(peeked).length <= 500, 'no more paths are told');
  }
}

const cases = (documents: readonly unknown[]) => documents.map((document) => JSON.stringify(document));

export const VERIFICATION: readonly Target[] = [
  {
    name: 'response-envelope',
    expected: isInstanceOfAny(Failure),
    seeds: [
      ...cases([
        { vp_token: '{"pid":["x"]}', state: 'state-1' },
        { response: 'a..b.c.d' },
        { error: 'access_denied', error_description: '<b>', state: 'state-1' },
      ]),
      '{}\n{"state":"state-1","vp_token":{"pid":["x~"]}}',
    ],
    dictionary: [...JSON_WORDS, 'vp_token', 'response', 'state', 'state-1', 'error', 'error_description', '&amp;', '\u200e'],
    decode: envelope,
  },
  {
    name: 'pasted-presentation',
    expected: isInstanceOfAny(Refusal),
    seeds: [
      seed('mdoc'),
      seed('sd-jwt'),
      `${JSON.stringify({ vp_token: { pid: [text(seed('sd-jwt'))], mdl: [text(seed('mdoc'))] } })}`,
      Buffer.from(text(seed('mdoc')), 'base64url').toString('hex'),
      ...cases([{ protocol: 'x', data: { vp_token: '{"pid":["x~"]}' } }, { response: 'a.b.c.d.e' }]),
    ],
    dictionary: [...JSON_WORDS, ...CBOR_WORDS, 'vp_token', 'data', 'response', '~', 'documents', 'issuerAuth'],
    decode: pasted,
  },
  {
    name: 'wallet-parameters',
    expected: isInstanceOfAny(Failure),
    seeds: [`nonce\n${JSON.stringify(metadata)}`, `\n${JSON.stringify({ jwks: { keys: [] } })}`],
    dictionary: [...JOSE_WORDS, ...Object.keys(metadata), 'keys', 'use', 'sig', 'enc', 'authorization_encryption_enc_values_supported'],
    decode: (input) => {
      const [nonce = '', ...furtherLines] = lines(input);
      const parameters = { wallet_nonce: nonce === '' ? undefined : nonce, wallet_metadata: furtherLines.join('\n') };
      const wishes = parseWalletParameters(parseWalletMetadata(parameters), demands, parameters.wallet_nonce);
      ensure(wishes.recipient === undefined || wishes.recipient.crv === 'P-256', 'only keys are used that we know');
    },
  },
];
