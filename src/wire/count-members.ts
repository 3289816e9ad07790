/*
 * Names under which servers read how many images or videos are asked for. Those that know several formats read all of
 * their names.
 */

/** Of either. */
export const countMembers: readonly string[] = [
  ...['n', 'count', 'sample_count', 'num_samples', 'n_variants', 'num_outputs'],
  ...['number_of_results', 'batch_size'],
];

/** Of images; those of Google's APIs in the spelling that these have, too. */
export const imageCountMembers: readonly string[] = [
  ...countMembers,
  ...['image_count', 'num_images', 'n_images', 'number_of_images', 'num_images_per_prompt', 'max_images'],
  ...['numberOfImages', 'sampleCount'],
];
