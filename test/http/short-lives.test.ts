import { expect } from 'chai';
import { openSdJwt } from '../../domain/formats/sd-jwt/parse.ts';
import { readIssuerSigned } from '../support/issuer-signed.ts';
import { created, offerBody } from '../support/populated.ts';
import { keyProof, newKey, now, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const display = [{ name: 'Ticket', locale: 'en' }];
const TYPE = 'org.example.ticket';
const FORMATS = {
  'dc+sd-jwt': { config: { format: 'dc+sd-jwt', display }, vct: 'urn:ticket:1' },
  mso_mdoc: { config: { format: 'mso_mdoc', docType: TYPE, display } },
} as const;

describe('A credential that lives for minutes', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await created(service, token, '/issuer/config', { display, batchSize: 20 });
    for (const [format, body] of Object.entries(FORMATS)) {
      const ticket = { ...body, id: format.replace('+', '-'), claims: { seat: 'A1' }, lifeTime: 300 };
      const { warnings } = await created(service, token, '/issuer/credentials', ticket);
      expect(warnings.map(({ member }: { member: string }) => member)).to.include('lifeTime');
    }
  });
  after(() => service.close());

  const collect = async (id: string): Promise<readonly string[]> => {
    const wallet = new RawWallet(service, 'acme');
    const access = await wallet.accessToken(
      (await created(service, token, '/issuer/offer', offerBody(id))).uri,
    );
    const nonce = await wallet.nonce();
    const jwt = Array.from({ length: 20 }, () => keyProof(newKey(), wallet.issuer, nonce));
    const body = { credential_configuration_id: id, proofs: { jwt } };
    const answer = await wallet.request(access, id, { body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body.credentials.map(({ credential }: { credential: string }) => credential);
  };
  const TIMES: Record<string, (text: string) => readonly [number, number]> = {
    'dc+sd-jwt': (text) => {
      const { iat, exp } = openSdJwt(text).issuer.payload;
      return [Number(iat), Number(exp)];
    },
    mso_mdoc: (text) => {
      const { signed, validFrom, validUntil } = readIssuerSigned(text, TYPE).mso.validity;
      expect(validFrom).to.deep.equal(signed);
      return [signed.getTime() / 1000, validUntil.getTime() / 1000];
    },
  };

  for (const [format, times] of Object.entries(TIMES)) {
    it(`ends within its lifetime, each copy on its own: ${format}`, async () => {
      const before = now();
      const copies = (await collect(format.replace('+', '-'))).map(times);
      const after = now();
      const hours = [before, after].map((seconds) => Math.floor(seconds / 3600) * 3600);
      for (const [from, until] of copies) {
        expect(hours).to.include(from);
        expect(until).to.be.within(before + 270, after + 300);
      }
      expect(new Set(copies.map(([, until]) => until)).size).to.be.above(5);
    });
  }
});
