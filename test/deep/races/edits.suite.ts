import { expect } from 'chai';
import { editsOf, writer } from '../../support/edits.ts';
import { populate } from '../../support/populated.ts';
import { type RacedSuite, tally, times } from '../../support/raced-services.ts';
import { sharedRegistrar } from '../../support/registrar.ts';

const registrar = await sharedRegistrar();

export const editsWithOneTag: RacedSuite = [
  'Edits with one tag',
  (racing) => {
    it('succeed once, whatever they edit and whoever else does', async () => {
      const { service } = racing();
      const world = await populate(service, 'raced');
      const root = await service.rootToken();
      for (const edit of editsOf(world.ids, registrar)) {
        const { write, tagOf } = writer(world, root, edit);
        // What all of them write differs from what is there.
        await write(0, 0);
        const tag = await tagOf();
        const answers = await times(12, (n) =>
          write(n, edit.read.startsWith('/status-lists') ? 1 : n + 1, tag),
        );
        const counts = tally(answers);
        const good = (counts['200'] ?? 0) + (counts['201'] ?? 0);
        expect([good, counts['409 conflict']], `${edit.name}: ${JSON.stringify(counts)}`).to.deep.equal([
          1, 11,
        ]);
        const winner = answers.find(({ status }) => status < 300);
        expect(winner?.headers.get('etag'), edit.name).to.equal(await tagOf());
      }
    });

    it('never overwrite one that came without', async () => {
      const { service } = racing();
      const world = await populate(service, 'mixed');
      const path = `/client/${world.ids.client}`;
      const { token } = world;
      const patch = (description: string, ifMatch?: string) => {
        const json = { roles: ['presentation:request'], description };
        return service.call('PATCH', path, { token, json, headers: ifMatch ? { 'If-Match': ifMatch } : {} });
      };
      for (let round = 0; round < 5; round++) {
        const tag = (await service.call('GET', path, { token })).headers.get('etag') ?? '';
        const answers = await times(8, (n) => patch(`${round} ${n}`, n % 2 === 0 ? tag : undefined));
        for (const { status, text } of answers) expect(status, text).to.be.oneOf([200, 409]);
        const conditional = answers.filter((_, n) => n % 2 === 0);
        expect(conditional.filter(({ status }) => status === 200).length).to.be.at.most(1);
      }
    });
  },
];
