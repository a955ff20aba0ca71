import type { Position } from '../../domain/rewinds/term.ts';

/** The last observed position of a database, stored outside of it, so that a restored database can be detected. */
export type Sighting = Position & {
  /** Address of the database without its user. */
  readonly address: string;
};

/** A store that is not restored together with the database. It may be unavailable at times: it is read at the start. */
export abstract class Witness {
  /** File or directory of the sightings, for messages to operators. */
  abstract readonly location: string;
  /** `place` with the host name, for messages on other machines. */
  abstract readonly qualifiedLocation: string;
  /** The sightings of all databases, latest first. @throws Error when some cannot be read. */
  abstract sightings(): Promise<readonly Sighting[]>;
  /** Stores the sighting unless a later one of the same lineage is stored. */
  abstract note(sighting: Sighting): Promise<void>;
  /** Removes other lineages at the address of this sighting, and stores it as the latest. */
  abstract begin(sighting: Sighting): Promise<void>;
}
