/** The task of the story that runs. */
export let task = null;

export const setTask = (given) => {
  task = given;
};
