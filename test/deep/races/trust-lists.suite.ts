import { expect } from 'chai';
import sinon from 'sinon';
import { Clock } from '../../../application/ports/clock.ts';
import { Kms } from '../../../application/ports/kms.ts';
import { Log } from '../../../application/ports/log.ts';
import { Random } from '../../../application/ports/random.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { Store } from '../../../application/ports/store.ts';
import { RenewTrustLists } from '../../../application/trust-lists/renew-trust-lists.ts';
import { TrustListPublisher } from '../../../application/trust-lists/trust-list-publisher.ts';
import { createResource } from '../../support/populated.ts';
import { callInParallel, countOutcomes, type RaceSuite } from '../../support/raced-services.ts';
import type { Answer } from '../../support/test-service.ts';

const sequenceNumberOf = (jwt: string): number =>
  JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()).LoTE.ListAndSchemeInformation.LoTESequenceNumber;
const DAY_MS = 24 * 60 * 60 * 1000;
const numbersUpTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const ENTITIES = [{ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } }];

export const trustLists: RaceSuite = [
  'concurrent writes of trust lists',
  (racing) => {
    const call = (method: string, path: string, json?: object): Promise<Answer> =>
      racing().service.call(method, path, { token: racing().token, ...(json === undefined ? {} : { json }) });
    const create = (id: string) => {
      const { service, token } = racing();
      return createResource(service, token, '/trust-list', { id, entities: ENTITIES });
    };
    /** The sequence numbers of all releases, including the current one. */
    const readSequenceNumbers = async (id: string): Promise<number[]> => {
      const { body: versions } = await call('GET', `/trust-list/${id}/versions`);
      const { body: list } = await call('GET', `/trust-list/${id}`);
      for (const { sequenceNumber, jwt } of [...versions, list]) expect(sequenceNumberOf(jwt)).to.equal(sequenceNumber);
      return [list, ...versions].map(({ sequenceNumber }) => sequenceNumber).reverse();
    };

    it('assign every write a separate sequence number, without gaps, and keep each version once', async () => {
      await create('contested');
      const answers = await callInParallel(36, (index) => {
        const description = `Write ${index}`;
        return index % 2 === 0
          ? call('PATCH', '/trust-list/contested', { description })
          : call('PUT', '/trust-list/contested', { description, entities: ENTITIES });
      });
      expect(countOutcomes(answers)).to.deep.equal({ 200: 36 });
      const sequenceNumbers = answers.map(({ body }) => body.sequenceNumber).sort((first, second) => first - second);
      expect(sequenceNumbers).to.deep.equal(numbersUpTo(37).slice(1));
      for (const { body } of answers) expect(sequenceNumberOf(body.jwt)).to.equal(body.sequenceNumber);
      expect(await readSequenceNumbers('contested')).to.deep.equal(numbersUpTo(37));
    });

    it('keep the changes of other properties', async () => {
      await create('shared');
      const data = { LoTE: { ListAndSchemeInformation: { SchemeTerritory: 'DE' } } };
      const changes = [{ description: 'Changed' }, { data }, { keyChainId: 'trust-list' }];
      const answers = await callInParallel(3, (index) => call('PATCH', '/trust-list/shared', changes[index]));
      expect(countOutcomes(answers)).to.deep.equal({ 200: 3 });
      const { body } = await call('GET', '/trust-list/shared/export');
      expect(body).to.deep.include({ description: 'Changed', data, keyChainId: 'trust-list' });
    });

    it('are created once', async () => {
      const answers = await callInParallel(10, () => call('POST', '/trust-list', { id: 'wanted', entities: [] }));
      expect(countOutcomes(answers)).to.deep.equal({ 201: 1, '409 conflict': 9 });
    });

    it('never repeat a sequence number after any number of removals and creations', async () => {
      const numbers: number[] = [];
      for (let attempt = 0; attempt < 4; attempt++) {
        const answers = await callInParallel(12, (index) => {
          if (index % 3 === 0) return call('DELETE', '/trust-list/fickle');
          if (index % 3 === 1) return call('POST', '/trust-list', { id: 'fickle', entities: [] });
          return call('PATCH', '/trust-list/fickle', {});
        });
        for (const { status, body } of answers) {
          expect(status).to.be.oneOf([200, 201, 404, 409]);
          if (body.sequenceNumber !== undefined) numbers.push(body.sequenceNumber);
        }
      }
      expect(numbers.length).to.be.greaterThan(3);
      expect(new Set(numbers).size, numbers.join(' ')).to.equal(numbers.length);
      await call('POST', '/trust-list', { id: 'fickle', entities: [] });
      const { body } = await call('GET', '/trust-list/fickle');
      expect(body.sequenceNumber).to.be.at.least(Math.max(...numbers));
    });

    it('are signed again once by many simultaneous processes', async () => {
      await create('renewed');
      const { container } = racing().service.service;
      const [store, log] = [container.get(Store), container.get(Log)];
      const ports = {
        ...{ store, kms: container.get(Kms), random: container.get(Random), clock: container.get(Clock) },
        settings: container.get(ServiceSettings),
      };
      const clock = sinon.useFakeTimers({ now: Date.now() + 25 * DAY_MS, toFake: ['Date'] });
      try {
        // Each has its own publisher, as in a separate process.
        await callInParallel(8, () => {
          const trustListPublisher = new TrustListPublisher(ports);
          return new RenewTrustLists({ store, log, trustListPublisher }).execute(new Date(), 100);
        });
      } finally {
        clock.restore();
      }
      expect(await readSequenceNumbers('renewed')).to.deep.equal([1, 2]);
    });

    it('reference no key chain that is deleted simultaneously', async () => {
      for (let attempt = 0; attempt < 6; attempt++) {
        const issuerKeyChainId = `own-${attempt}`;
        const { service, token } = racing();
        await createResource(service, token, '/key-chain', { id: issuerKeyChainId, usages: ['signing'] });
        const entities = [{ type: 'internal', issuerKeyChainId, info: { name: 'Own', country: 'DE', streetAddress: 'Weg 1' } }];
        const [removal, referencing] = await Promise.all([
          call('DELETE', `/key-chain/${issuerKeyChainId}`),
          call('POST', '/trust-list', { id: `names-${attempt}`, entities }),
        ]);
        expect([removal.status, referencing.status], `round ${attempt}`).to.be.deep.oneOf([
          [200, 400],
          [409, 201],
        ]);
      }
    });
  },
];
