import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { created } from '../../support/populated.ts';
import { verifiedByLeaf } from '../../support/present.ts';
import { type RacedSuite, readySessions, tally, times } from '../../support/raced-services.ts';
import { newKey } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

export const keys: RacedSuite = [
  'Keys',
  (racing) => {
    const call = (method: string, path: string, json?: object): Promise<Answer> =>
      racing().service.call(method, path, { token: racing().token, ...(json === undefined ? {} : { json }) });
    const create = (id: string, more: object = {}) => {
      const { service, token } = racing();
      return created(service, token, '/key-chain', { id, usageType: 'signing', ...more });
    };
    const kid = ({ key }: { key: { kid: string } }): string => key.kid;

    it('are rotated one after the other, and none is lost that signed', async () => {
      const made = await create('contested');
      const answers = await times(20, () => call('POST', '/key-chain/contested/rotate'));
      const { 200: done = 0, '409 conflict': refused = 0 } = tally(answers);
      expect(done + refused, JSON.stringify(tally(answers))).to.equal(20);
      expect(done).to.be.greaterThan(0);
      const { body: chain } = await call('GET', '/key-chain/contested');
      const active = answers.filter(({ status }) => status === 200).map(({ body }) => body.activeKey.kid);
      expect(new Set(active).size, 'each made its own').to.equal(done);
      const known = [chain.activeKey.kid, ...chain.previousKeys.map(kid)];
      expect(known).to.have.members([...active, made.activeKey.kid]);
      const { keys } = (await call('GET', `/${racing().wallet.tenant}/.well-known/jwks.json`)).body;
      expect(keys.map((key: { kid: string }) => key.kid)).to.include.members(known);
      const leaf = new X509Certificate(chain.activeCertificate);
      const { x } = leaf.publicKey.export({ format: 'jwk' });
      expect(x, 'key and certificate belong together').to.equal(chain.activeKey.x);
    });

    it('sign what is issued meanwhile, each under its own certificate', async () => {
      const { wallet } = racing();
      const sessions = await readySessions(racing(), 12);
      const [issued] = await Promise.all([
        times(12, (index) => wallet.request(sessions[index]?.accessToken ?? '', 'pid', { key: newKey() })),
        times(6, () => call('POST', '/key-chain/signing/rotate')),
      ]);
      for (const { status, body, text } of issued) {
        expect(status, text).to.equal(200);
        const leaf = verifiedByLeaf(body.credentials[0].credential.split('~')[0]);
        const { body: chain } = await call('GET', '/key-chain/signing');
        expect(leaf.verify(new X509Certificate(chain.rootCertificate).publicKey)).to.equal(true);
      }
    });

    it('are gone or rotated when both are asked for at once', async () => {
      for (let round = 0; round < 5; round++) {
        await create(`fickle-${round}`);
        const [removed, rotated] = await Promise.all([
          call('DELETE', `/key-chain/fickle-${round}`),
          call('POST', `/key-chain/fickle-${round}/rotate`),
        ]);
        expect(removed.status).to.equal(200);
        expect(rotated.status).to.be.oneOf([200, 404]);
        expect((await call('GET', `/key-chain/fickle-${round}`)).status).to.equal(404);
      }
    });

    const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

    it('stay deleted when a certificate is made for them at the same time', async () => {
      for (let round = 0; round < 24; round++) {
        const id = `going-${round}`;
        const { key } = await created(racing().service, racing().token, '/key', { id });
        const [made, removed] = await Promise.all([
          call('POST', '/certs', { id: `cert-${round}`, keyId: id, certUsageTypes: ['signing'] }),
          pause(round % 6).then(() => call('DELETE', `/key/${id}`)),
        ]);
        expect(removed.status).to.equal(200);
        expect(made.status).to.be.oneOf([201, 404]);
        expect((await call('GET', `/certs/cert-${round}`)).status, `round ${round}`).to.equal(404);
        const { keys } = (await call('GET', `/${racing().wallet.tenant}/.well-known/jwks.json`)).body;
        expect(keys.map((known: { kid: string }) => known.kid)).to.not.include(key.kid);
      }
    });

    it('are brought once under one id', async () => {
      const key = newKey().privateKey.export({ format: 'jwk' });
      const answers = await times(10, () =>
        call('POST', '/key-chain/import', { id: 'wanted', usageType: 'signing', key }),
      );
      expect(tally(answers)).to.deep.equal({ 201: 1, '409 conflict': 9 });
    });

    it('are rotated once by many maintenance at the same time', async () => {
      await create('due', { rotationEnabled: true, rotationIntervalDays: 20 });
      const chore = racing().service.service.container.get(RenewKeyChains);
      const clock = sinon.useFakeTimers({ now: Date.now() + 21 * DAY_MS, toFake: ['Date'] });
      try {
        await times(8, () => chore.execute(new Date(), 100));
      } finally {
        clock.restore();
      }
      expect((await call('GET', '/key-chain/due')).body.previousKeys).to.have.length(1);
    });
  },
];
