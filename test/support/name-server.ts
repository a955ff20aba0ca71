import { createSocket, type Socket } from 'node:dgram';

/** Addresses of a name; `nothing`: it does not exist; `silence`: no answer. */
export type Zone = (name: string) => readonly string[] | 'nothing' | 'silence';

const A = 1;
const AAAA = 28;
const NO_SUCH_NAME = 3;

/** A name server over UDP (RFC 1035) with configurable answers. */
export class NameServer {
  /** Queried names, once for each address family. */
  readonly queriedNames: string[] = [];
  zone: Zone = () => 'nothing';
  readonly #socket: Socket = createSocket('udp4');

  static async start(zone: Zone): Promise<NameServer> {
    const server = new NameServer();
    server.zone = zone;
    server.#socket.on('message', (query, { port, address }) => {
      const answer = server.#answer(query);
      if (answer !== undefined) server.#socket.send(answer, port, address);
    });
    await new Promise<void>((resolve) => server.#socket.bind(0, '127.0.0.1', resolve));
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  close(): void {
    this.#socket.close();
  }

  #answer(query: Buffer): Buffer | undefined {
    const labels: string[] = [];
    let position = 12;
    for (let length = query[position] ?? 0; length > 0; length = query[position] ?? 0) {
      labels.push(query.toString('latin1', position + 1, position + 1 + length));
      position += 1 + length;
    }
    const name = labels.join('.').toLowerCase();
    const type = query.readUInt16BE(position + 1);
    const question = query.subarray(12, position + 5);
    this.queriedNames.push(name);
    const addresses = this.zone(name);
    if (addresses === 'silence') return undefined;
    const matchingAddresses = addresses === 'nothing' ? [] : addresses.filter((address) => address.includes(':') === (type === AAAA));
    const records = type === A || type === AAAA ? matchingAddresses.map((address) => resourceRecord(address, type)) : [];
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180 | (addresses === 'nothing' ? NO_SUCH_NAME : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    return Buffer.concat([header, question, ...records]);
  }
}

/** A resource record for the queried name with a TTL of one minute. */
function resourceRecord(address: string, type: number): Buffer {
  const data = type === A ? Buffer.from(address.split('.').map(Number)) : addressBytes(address);
  const fixedPart = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length]);
  return Buffer.concat([fixedPart, data]);
}

function addressBytes(address: string): Buffer {
  const [left = '', right = ''] = address.split('::');
  const groups = (text: string) => text.split(':').filter(Boolean);
  const middle = Array(8 - groups(left).length - groups(right).length).fill('0');
  const allGroups = [...groups(left), ...middle, ...groups(right)];
  return Buffer.from(allGroups.map((word: string) => word.padStart(4, '0')).join(''), 'hex');
}
