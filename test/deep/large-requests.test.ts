import { expect } from 'chai';
import { QUERY, requestPresentation } from '../support/present.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { BlockMeter, type MeasuredRequest } from '../support/thread-holds.ts';

const MEBIBYTE = 1024 * 1024;
/** What a request without a token may hold the thread for. */
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
const members = (bytes: number) => {
  let text = '{';
  for (let i = 0; text.length < bytes - 20; i++) text += `"a${i}":0,`;
  return `${text}"z":0}`;
};

/** Values that are dear to read, of about as many bytes as wanted. */
const HOSTILE_JSON: Readonly<Record<string, (bytes: number) => string>> = {
  'many properties': members,
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
const carried = (name: string) =>
  Object.fromEntries(
    Object.entries(HOSTILE_JSON).map(([what, make]) => [`${what} in ${name}`, (bytes: number) => `${name}=${make(bytes - 20)}`]),
  );

/** Presentations that are dear to take apart, as they stand in a token. */
const HOSTILE_PRESENTATIONS: Readonly<Record<string, (bytes: number) => string>> = {
  tildes: (bytes) => `${jwt({ a: 1 })}${repeat('~', bytes)}`,
  'short disclosures': (bytes) => `${jwt({ a: 1 })}~${repeat('YQ~', bytes)}`,
  'a payload of many properties': (bytes) => `${jwt(members(bytes * 0.7))}~`,
  'a header of many properties': () => `${jwt({ a: 1 }, members(32_000))}~`,
  points: (bytes) => repeat('.', bytes),
  'CBOR of many numbers': (bytes) => cbor(Buffer.concat([Buffer.from('9f', 'hex'), Buffer.alloc(bytes * 0.7)])),
  'CBOR of empty maps': (bytes) => cbor(Buffer.concat([Buffer.from('9f', 'hex'), Buffer.alloc(bytes * 0.7, 0xa0)])),
  'CBOR of texts': (bytes) => cbor(Buffer.concat([Buffer.from('9f', 'hex'), Buffer.alloc(bytes * 0.7, 0x60)])),
};

function jwt(payload: object | string, header: object | string = { alg: 'ES256', typ: 'dc+sd-jwt' }): string {
  const part = (value: object | string) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
  return `${part(header)}.${part(payload)}.${'A'.repeat(86)}`;
}

function cbor(bytes: Buffer): string {
  return bytes.toString('base64url');
}

describe('large request without a token', function () {
  this.timeout(300_000);
  let service: TestService;
  let holds: BlockMeter;
  let token: string;

  before(async () => {
    service = await startTestService({ RATE_LIMIT_TOKEN: '0', RATE_LIMIT_NONCE: '0' });
    ({ token } = await createTenant(service, 'acme'));
    const configure = (more: object) => service.call('POST', '/verifier/config', { token, json: { dcql_query: QUERY, ...more } });
    for (const configuration of [
      { id: 'check', responseMode: 'direct_post' },
      { id: 'mdoc', responseMode: 'direct_post', dcql_query: MDOC_QUERY },
      { id: 'page', responseMode: 'direct_post', expectedOrigins: ['https://shop.example'] },
    ]) {
      const made = await configure(configuration);
      expect(made.status, made.text).to.equal(201);
    }
    holds = new BlockMeter();
  });
  after(async () => {
    await holds.close();
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
  const expectShort = async (what: string, make: () => MeasuredRequest | Promise<MeasuredRequest>) => {
    const { milliseconds, status } = await holds.measure(make, LIMIT_MS);
    expect(status, what).to.be.within(400, 499);
    expect(milliseconds, what).to.be.lessThan(LIMIT_MS);
  };
  /** An open request of its own for each try: the first answer ends it. */
  const answered = async (requestId: string, body: (state: string) => string): Promise<MeasuredRequest> => {
    const { payload } = await requestPresentation(service, token, requestId);
    return post(payload['response_uri'], body(payload['state']), FORM);
  };

  for (const [what, make] of Object.entries({ ...HOSTILE_FORMS, ...carried('vp_token') })) {
    it(`blocks the thread only briefly with a form of ${what}`, async () => {
      const body = make(MEBIBYTE - 100);
      await expectShort(`to an unknown request, ${what}`, () => post('/acme/response/unknown', body, FORM));
      await expectShort(`to an unknown tenant, ${what}`, () => post('/nobody/response/unknown', body, FORM));
      await expectShort(`to interactive, ${what}`, () => post('/acme/interactive-authorization', body, FORM));
      await expectShort(`to an open request, ${what}`, () => answered('check', (state) => `state=${state}&${body}`));
    });
  }

  for (const [what, make] of Object.entries(HOSTILE_JSON)) {
    it(`blocks the thread only briefly with JSON of ${what}`, async () => {
      const body = make(MEBIBYTE - 100);
      await expectShort(`to an unknown page, ${what}`, () => post('/acme/dc-api/unknown', body, JSON_TYPE));
      await expectShort(`for a token, ${what}`, () => post('/oauth2/token', make(65_000), JSON_TYPE));
      await expectShort(`for a credential, ${what}`, () => post('/acme/credential', make(500_000), JSON_TYPE));
      const details = `grant_type=x&authorization_details=${make(60_000)}`;
      await expectShort(`for a pushed request, ${what}`, () => post('/acme/par', details, FORM));
    });
  }

  it('blocks the thread only briefly with claims of very many paths', async () => {
    const path = (bytes: number) => Array.from({ length: 1_900 }, (_, i) => `${i}${'a'.repeat(bytes / 1_900)}`);
    const details = (bytes: number) =>
      JSON.stringify([{ type: 'openid_credential', credential_configuration_id: 'card', claims: [{ path: path(bytes) }] }]);
    const form = (bytes: number) => `grant_type=refresh_token&authorization_details=${details(bytes)}`;
    for (const address of ['/acme/token', '/acme/par', '/acme/chained-as/par'])
      await expectShort(address, () => post(address, form(40_000), FORM));
    await expectShort('interactive', () => post('/acme/interactive-authorization', form(900_000), FORM));
  });

  for (const [what, make] of Object.entries(HOSTILE_PRESENTATIONS)) {
    it(`blocks the thread only briefly with a presentation of ${what}`, async () => {
      const presentation = make(700_000);
      for (const requestId of ['check', 'mdoc']) {
        await expectShort(`${requestId}, ${what}`, () =>
          answered(requestId, (state) => `state=${state}&vp_token={"card":["${presentation}"]}`),
        );
      }
    });
  }
});
