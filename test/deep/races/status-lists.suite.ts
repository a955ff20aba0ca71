import { expect } from 'chai';
import { created } from '../../support/populated.ts';
import { decode } from '../../support/present.ts';
import { type RacedSuite, readySessions, tally, times } from '../../support/raced-services.ts';

export const removedStatusLists: RacedSuite = [
  'Status lists that administrators remove',
  (racing) => {
    it('are gone or serve whoever got an entry, with many credentials at once', async () => {
      const { service, token, wallet } = racing();
      const made: { id: string; uri: string }[] = [];
      for (let i = 0; i < 12; i++)
        made.push(await created(service, token, '/status-lists', { capacity: 100 }));
      const sessions = await readySessions(racing(), 30);
      const issuing = times(30, (i) => wallet.request(sessions[i]?.accessToken ?? '', 'pid'));
      const removing = times(36, (i) =>
        service.call('DELETE', `/status-lists/${made[i % made.length]?.id}`, { token }),
      );
      const [issued, removed] = [await issuing, await removing];
      expect(tally(issued)).to.deep.equal({ 200: 30 });
      for (const answer of removed) expect(answer.status, answer.text).to.be.oneOf([204, 404, 409]);
      const entries = issued.map(
        ({ body }) => decode(body.credentials[0].credential).payload['status'].status_list,
      );
      expect(new Set(entries.map(({ uri, idx }) => `${uri} ${idx}`)).size).to.equal(30);
      await new Promise((resolve) => setTimeout(resolve, 600));
      for (const uri of new Set(entries.map((entry) => entry.uri))) {
        expect((await service.call('GET', uri)).status, uri).to.equal(200);
      }
      const left = (await service.call('GET', '/status-lists', { token })).body;
      const listed = left.map(({ uri }: { uri: string }) => uri);
      for (const { uri } of entries) expect(listed).to.include(uri);
      const gone = made.filter(({ uri }) => !listed.includes(uri));
      expect(removed.filter(({ status }) => status === 204)).to.have.length(gone.length);
      for (const { uri } of gone) expect((await service.call('GET', uri)).status, uri).to.equal(404);
    });
  },
];
