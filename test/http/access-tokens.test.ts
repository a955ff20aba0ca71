import { expect } from 'chai';
import { processorTimeUntil } from '../support/processor-time.ts';
import {
  type Answer,
  createTenant,
  ROOT,
  startTestService,
  type TestService,
} from '../support/test-service.ts';

const SECRET = 'a-secret-that-was-agreed-on';

describe('the token endpoint for administrators', () => {
  let service: TestService;
  let admin: string;

  const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString('base64')}` });
  const grant = { grant_type: 'client_credentials' };
  const post = (options: object) => service.call('POST', '/oauth2/token', options);

  before(async () => {
    service = await startTestService();
    const { token } = await createTenant(service, 'acme');
    admin = token;
    const json = { clientId: 'caller', roles: ['issuance:offer'], secret: SECRET };
    expect((await service.call('POST', '/client', { token, json })).status).to.equal(201);
  });
  after(() => service.close());

  it('takes both published ways, and forms', async () => {
    const ways = [
      { json: grant, headers: basic(`caller:${SECRET}`) },
      { json: { ...grant, client_id: 'caller', client_secret: SECRET } },
      { form: grant, headers: basic(`caller:${SECRET}`) },
      { form: { ...grant, client_id: 'caller', client_secret: SECRET } },
    ];
    for (const way of ways) {
      const answer = await post(way);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      expect(answer.body).to.have.all.keys('access_token', 'token_type', 'expires_in');
      expect(answer.body).to.include({ token_type: 'Bearer', expires_in: 86_400 });
      const payload = JSON.parse(Buffer.from(answer.body.access_token.split('.')[1], 'base64url').toString());
      expect(payload).to.deep.include({
        iss: 'platform-service',
        aud: 'platform-service',
        sub: 'acme',
        client_id: 'caller',
        roles: ['issuance:offer'],
      });
      expect(payload.exp - payload.iat).to.equal(86_400);
    }
  });

  const refused: [string, object, number, string][] = [
    [
      'a wrong secret',
      { json: { ...grant, client_id: 'caller', client_secret: 'x' } },
      401,
      'invalid_client',
    ],
    ['an unknown client', { json: { ...grant, client_id: 'x', client_secret: 'x' } }, 401, 'invalid_client'],
    ['no credentials', { json: grant }, 401, 'invalid_client'],
    ['another grant', { json: { grant_type: 'password' } }, 400, 'unsupported_grant_type'],
    ['no grant', { json: { client_id: 'caller', client_secret: SECRET } }, 400, 'invalid_request'],
    [
      'two ways that contradict each other',
      {
        json: { ...grant, client_id: 'caller', client_secret: 'another' },
        headers: basic(`caller:${SECRET}`),
      },
      400,
      'invalid_request',
    ],
    ['broken JSON', { text: '{', headers: { 'Content-Type': 'application/json' } }, 400, 'invalid_request'],
  ];
  for (const [what, options, status, error] of refused) {
    it(`refuses ${what}`, async () => {
      const answer = await post(options);
      expect([answer.status, answer.body.error], answer.text).to.deep.equal([status, error]);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      expect(answer.body).to.not.have.property('title');
      if (status === 401) expect(answer.headers.get('www-authenticate')).to.match(/^Basic /);
    });
  }

  it('answers alike for a wrong secret and an unknown client', async () => {
    const answers = await Promise.all(
      ['caller', 'nobody-at-all'].map((client_id) =>
        post({ json: { ...grant, client_id, client_secret: 'wrong' } }),
      ),
    );
    expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
  });

  it('answers a known client while strangers try 150 names at once', async () => {
    const attempt = (client_id: string, client_secret: string) =>
      post({ json: { ...grant, client_id, client_secret } });
    const fresh = await service.call('POST', '/client', {
      token: admin,
      json: { clientId: 'busy', roles: ['issuance:offer'], secret: SECRET },
    });
    expect(fresh.status, fresh.text).to.equal(201);
    const single = await processorTimeUntil(() => attempt('nobody', 'guess'));
    const strangers = Array.from({ length: 150 }, (_, i) => attempt(`stranger-${i}`, `guess ${i}`));
    let answer: Answer | undefined;
    const spent = await processorTimeUntil(async () => {
      answer = await attempt('busy', SECRET);
    });
    expect(answer?.status, answer?.text).to.equal(200);
    expect(spent, 'behind fewer than fifty of the other attempts').to.be.lessThan(50 * single);
    const others = await Promise.all(strangers);
    expect(new Set(others.map(({ status }) => status))).to.deep.equal(new Set([401]));
  });

  it('tells by no number of attempts at once whether there is a client', async () => {
    const outcomes = async (client_id: string) => {
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, i) =>
          post({ json: { ...grant, client_id, client_secret: `wrong ${i}` } }),
        ),
      );
      return answers
        .map(({ status, text, headers }) => `${status} ${headers.get('retry-after')} ${text}`)
        .sort();
    };
    const known = await outcomes('caller');
    expect(known.filter((outcome) => outcome.startsWith('429 1'))).to.have.length(3);
    for (const name of ['nobody-at-all', ROOT.clientId])
      expect(await outcomes(name), name).to.deep.equal(known);
  });
});
