import { expect } from 'chai';
import { readOptions } from '../../bench/options.ts';

describe('the arguments of the benchmark', () => {
  it('are all scenarios on both databases unless stated', () => {
    const { only, databases, against } = readOptions([]);
    expect([only.size, databases, against]).to.deep.equal([0, ['postgres', 'sqlite'], undefined]);
  });

  it('name a second service with settings and options of its own', () => {
    const args = ['--against', '/other', '--env', 'A=b=c', '--node-option=--max-semi-space-size=16'];
    expect(readOptions(args).against).to.deep.equal({
      tree: '/other',
      environment: { A: 'b=c' },
      nodeOptions: ['--max-semi-space-size=16'],
    });
  });

  it('let all grow unless some of it is named', () => {
    expect(readOptions([]).grow).to.deep.equal([]);
    expect(readOptions(['--grow']).grow).to.deep.equal(['sessions', 'tenants', 'lists', 'keys']);
    expect(readOptions(['--grow', '--grow-by', 'keys,lists']).grow).to.deep.equal(['keys', 'lists']);
  });

  for (const [what, args, reason] of [
    ['a scenario that there is not', ['--only', 'dance'], 'no scenario "dance"'],
    ['a growth that there is not', ['--grow', '--grow-by', 'fame'], 'no growth "fame"'],
    ['a setting without a second service', ['--env', 'A=b'], '--against'],
    ['a setting without a value', ['--against', '.', '--env', 'A'], 'NAME=value'],
    ['fewer pairs than say anything', ['--against', '.', '--pairs', '4'], 'from 5 on'],
    ['no time at all', ['--seconds', '0'], 'positive'],
    ['several processes on SQLite', ['--processes', '2', '--database', 'sqlite'], 'PostgreSQL only'],
    [
      'a baseline where no table is made',
      ['--against', '.', '--baseline', 'a.json'],
      '--baseline is about the table',
    ],
    ['a file to keep where no table is made', ['--memory', '--save', 'a.json'], '--save is about the table'],
  ] as const) {
    it(`are refused with the usage: ${what}`, () => {
      expect(() => readOptions(args))
        .to.throw(reason)
        .with.property('message')
        .that.includes('--only <name')
        // What is wrong is what is read, below a page of options.
        .and.matches(new RegExp(`${reason}[^\\n]*$`));
    });
  }
});
