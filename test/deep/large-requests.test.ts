import { expect } from 'chai';
import { QUERY, requestPresentation } from '../support/present.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { BlockMeter, type MeasuredRequest } from '../support/thread-blocks.ts';

const MEBIBYTE = 1024 * 1024;
/** How long a request without a token may block the thread. */
// A fifth of the 50 ms that the service allows. A megabyte of white space takes 4 to 6.5 ms, depending on the machine.
const LIMIT_MS = 10;

const MDOC_QUERY = {
  credentials: [
    {
      id: 'card',
      format: 'mso_mdoc',
      meta: { doctype_value: 'org.iso.18013.5.1.mDL' },
      claims: [{ path: ['org.iso.18013.5.1', 'family_name'] }],
    },
  ],
};

const repeat = (text: string, bytes: number) => text.repeat(Math.floor(bytes / text.length));
const manyProperties = (bytes: number) => {
  let text = '{';
  for (let i = 0; text.length < bytes - 20; i++) text += `"a${i}":0,`;
  return `${text}"z":0}`;
};

/** Values that are expensive to parse, by their approximate size in bytes. */
const HOSTILE_JSON: Readonly<Record<string, (bytes: number) => string>> = {
  'many properties': manyProperties,
  'many entries': (bytes) => `{"a":[${repeat('0,', bytes - 10)}0]}`,
  'many objects': (bytes) => `{"a":[${repeat('{},', bytes - 10)}0]}`,
  'deep nesting': (bytes) => repeat('[', bytes),
  'escaped characters': (bytes) => `{"a":"${repeat('\\u0041', bytes - 10)}"}`,
  'short escapes': (bytes) => `{"a":"${repeat('\\n', bytes - 10)}"}`,
  'one long text': (bytes) => `{"a":"${repeat('A', bytes - 10)}"}`,
  'one long number': (bytes) => `{"a":${repeat('1', bytes - 10)}}`,
  'white space': (bytes) => `{"a"${repeat(' ', bytes - 10)}:0}`,
  'properties called alike': (bytes) => `{${repeat('"a":0,', bytes - 10)}"a":0}`,
  'tildes and points': (bytes) => `{"vp_token":{"q":["${repeat('a.~', bytes - 40)}"]}}`,
};
const HOSTILE_FORMS: Readonly<Record<string, (bytes: number) => string>> = {
  'many parameters': (bytes) => repeat('a=b&', bytes),
  'parameters without a name': (bytes) => repeat('&', bytes),
  'escapes of a letter': (bytes) => `vp_token=${repeat('%41', bytes - 10)}`,
  'escapes that are no text': (bytes) => `vp_token=${repeat('%ff', bytes - 10)}`,
  'percent signs': (bytes) => `vp_token=${repeat('%', bytes - 10)}`,
  'plus signs': (bytes) => `vp_token=${repeat('+', bytes - 10)}`,
  'plus signs in the name': (bytes) => `${repeat('+', bytes - 10)}=1`,
};
const asParameter = (name: string) =>
  Object.fromEntries(
    Object.entries(HOSTILE_JSON).map(([description, make]) => [
      `${description} in ${name}`,
      (bytes: number) => `${name}=${make(bytes - 20)}`,
    ]),
  );

/** Presentations that are expensive to parse, as values of `vp_token`. */
const HOSTILE_PRESENTATIONS: Readonly<Record<string, (bytes: number) => string>> = {
  tildes: (bytes) => `${jwt({ a: 1 })}${repeat('~', bytes)}`,
  'short disclosures': (bytes) => `${jwt({ a: 1 })}~${repeat('YQ~', bytes)}`,
  'a payload of many properties': (bytes) => `${jwt(manyProperties(bytes * 0.7))}~`,
  'a header of many properties': () => `${jwt({ a: 1 }, manyProperties(32_000))}~`,
  points: (bytes) => repeat('.', bytes),
  'CBOR of many numbers': (bytes) => cbor(Buffer.concat([Buffer.from('9f', 'hex'), Buffer.alloc(bytes * 0.7)])),
  'CBOR of empty maps': (bytes) => cbor(Buffer.concat([Buffer.from('9f', 'hex'), Buffer.alloc(bytes * 0.7, 0xa0)])),
  'CBOR of texts': (bytes) => cbor(Buffer.concat([Buffer.from('9f', 'hex'), Buffer.alloc(bytes * 0.7, 0x60)])),
};

function jwt(payload: object | string, header: object | string = { alg: 'ES256', typ: 'dc+sd-jwt' }): string {
  const encodePart = (value: object | string) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
  return `${encodePart(header)}.${encodePart(payload)}.${'A'.repeat(86)}`;
}

function cbor(bytes: Buffer): string {
  return bytes.toString('base64url');
}

describe('large request without a token', function () {
  this.timeout(300_000);
  let service: TestService;
  let blockMeter: BlockMeter;
  let token: string;

  before(async () => {
    service = await startTestService({ RATE_LIMIT_TOKEN: '0', RATE_LIMIT_NONCE: '0' });
    ({ token } = await createTenant(service, 'acme'));
    const configure = (overrides: object) => service.call('POST', '/verifier/config', { token, json: { dcql_query: QUERY, ...overrides } });
    for (const configuration of [
      { id: 'check', responseMode: 'direct_post' },
      { id: 'mdoc', responseMode: 'direct_post', dcql_query: MDOC_QUERY },
      { id: 'page', responseMode: 'direct_post', expectedOrigins: ['https://shop.example'] },
    ]) {
      const configurationResponse = await configure(configuration);
      expect(configurationResponse.status, configurationResponse.text).to.equal(201);
    }
    blockMeter = new BlockMeter();
  });
  after(async () => {
    await blockMeter.close();
    await service.close();
  });

  const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const JSON_TYPE = { 'Content-Type': 'application/json' };
  const post = (path: string, body: string, headers: Record<string, string>): MeasuredRequest => ({
    address: path.startsWith('http') ? path : service.address + path,
    method: 'POST',
    headers,
    body,
  });
  const expectShortBlock = async (description: string, make: () => MeasuredRequest | Promise<MeasuredRequest>) => {
    const { milliseconds, status } = await blockMeter.measure(make, LIMIT_MS);
    expect(status, description).to.be.within(400, 499);
    expect(milliseconds, description).to.be.lessThan(LIMIT_MS);
  };
  /** Creates a new request for each attempt, since the first response ends it. */
  const responseRequest = async (requestId: string, body: (state: string) => string): Promise<MeasuredRequest> => {
    const { payload } = await requestPresentation(service, token, requestId);
    return post(payload['response_uri'], body(payload['state']), FORM);
  };

  for (const [description, make] of Object.entries({ ...HOSTILE_FORMS, ...asParameter('vp_token') })) {
    it(`blocks the thread only briefly with a form of ${description}`, async () => {
      const body = make(MEBIBYTE - 100);
      await expectShortBlock(`to an unknown request, ${description}`, () => post('/acme/response/unknown', body, FORM));
      await expectShortBlock(`to an unknown tenant, ${description}`, () => post('/nobody/response/unknown', body, FORM));
      await expectShortBlock(`to interactive, ${description}`, () => post('/acme/interactive-authorization', body, FORM));
      await expectShortBlock(`to an open request, ${description}`, () => responseRequest('check', (state) => `state=${state}&${body}`));
    });
  }

  for (const [description, make] of Object.entries(HOSTILE_JSON)) {
    it(`blocks the thread only briefly with JSON of ${description}`, async () => {
      const body = make(MEBIBYTE - 100);
      await expectShortBlock(`to an unknown page, ${description}`, () => post('/acme/dc-api/unknown', body, JSON_TYPE));
      await expectShortBlock(`for a token, ${description}`, () => post('/oauth2/token', make(65_000), JSON_TYPE));
      await expectShortBlock(`for a credential, ${description}`, () => post('/acme/credential', make(500_000), JSON_TYPE));
      const details = `grant_type=x&authorization_details=${make(60_000)}`;
      await expectShortBlock(`for a pushed request, ${description}`, () => post('/acme/par', details, FORM));
    });
  }

  it('blocks the thread only briefly with claims of very many paths', async () => {
    const path = (bytes: number) => Array.from({ length: 1_900 }, (_, i) => `${i}${'a'.repeat(bytes / 1_900)}`);
    const details = (bytes: number) =>
      JSON.stringify([{ type: 'openid_credential', credential_configuration_id: 'card', claims: [{ path: path(bytes) }] }]);
    const form = (bytes: number) => `grant_type=refresh_token&authorization_details=${details(bytes)}`;
    for (const address of ['/acme/token', '/acme/par', '/acme/chained-as/par'])
      await expectShortBlock(address, () => post(address, form(40_000), FORM));
    await expectShortBlock('interactive', () => post('/acme/interactive-authorization', form(900_000), FORM));
  });

  for (const [description, make] of Object.entries(HOSTILE_PRESENTATIONS)) {
    it(`blocks the thread only briefly with a presentation of ${description}`, async () => {
      const presentation = make(700_000);
      for (const requestId of ['check', 'mdoc']) {
        await expectShortBlock(`${requestId}, ${description}`, () =>
          responseRequest(requestId, (state) => `state=${state}&vp_token={"card":["${presentation}"]}`),
        );
      }
    });
  }
});
