import type { Position } from '../../domain/rewinds/term.ts';

/** What this machine saw of a database, kept outside of it, so that a database that was put back can be told. */
export type Sighting = Position & {
  /** Address of the database without who uses it. */
  readonly address: string;
};

/** A memory that is not put back together with the database. It need not be there at each moment: it is asked at the start. */
export abstract class Witness {
  /** Where the sightings are kept, for messages to operators. */
  abstract readonly place: string;
  /** The same with the name of the host, for messages on other machines. */
  abstract readonly qualifiedPlace: string;
  /** The sightings of all databases, the latest first. @throws Error when there are some that cannot be read. */
  abstract sightings(): Promise<readonly Sighting[]>;
  /** Keeps it unless a later one of the same lineage is there. */
  abstract note(sighting: Sighting): Promise<void>;
  /** Forgets other lineages at the address of this sighting, and takes it for the latest. */
  abstract begin(sighting: Sighting): Promise<void>;
}
