"""TrainingPolicy: what cluster admins configure. Pure: objects, requests and the time come in, verdicts go out."""
